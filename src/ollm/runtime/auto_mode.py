"""Proposes another mode, or switches to it, when a message fits it better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.events import Notice
from ollm.services.mode_proposal import propose_mode

if TYPE_CHECKING:
    from ollm.runtime.changes import Changeable


async def auto_switch_mode(conversation: Changeable, text: str) -> None:
    """Propose the mode that a message fits, or switch to it, as `modes.autoSwitch` says; not called when it is off."""
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
