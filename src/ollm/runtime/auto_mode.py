"""What happens when a message fits another mode: nothing, a word about it, or the change itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.events import Notice
from ollm.services.mode_proposal import propose_mode

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts


async def auto_switch_mode(parts: ConversationParts, text: str) -> None:
    """Propose or make the change a message asks for, as `modes.autoSwitch` says."""
    if parts.auto_switch == "off":
        return
    found = propose_mode(text, parts.prompt.mode)
    if found is None or found.mode in parts.proposed:
        return
    if parts.auto_switch == "on":
        from ollm.runtime.changes import change_mode

        await change_mode(parts, found.mode, "auto", found.confidence)
        return
    parts.proposed.add(found.mode)
    parts.stream.emit(Notice(level="info", text=f"This looks like work for mode {found.mode}: /mode {found.mode}"))
