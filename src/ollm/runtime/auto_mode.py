"""What happens when a message fits another mode: nothing, a word about it, or the change itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.events import Notice
from ollm.services.mode_proposal import propose_mode

if TYPE_CHECKING:
    from ollm.runtime.changes import Changeable


async def auto_switch_mode(conversation: Changeable, text: str) -> None:
    """Propose or make the change a message asks for, as `modes.autoSwitch` says; it is not off."""
    found = propose_mode(text, conversation.prompt.mode)
    if found is None or found.mode in conversation.state.proposed_modes:
        return
    if conversation.state.auto_switch == "on":
        from ollm.runtime.changes import change_mode

        await change_mode(conversation, found.mode, "auto", found.confidence)
        return
    conversation.state.proposed_modes.add(found.mode)
    conversation.stream.emit(
        Notice(level="info", text=f"This looks like work for mode {found.mode}: /mode {found.mode}")
    )
