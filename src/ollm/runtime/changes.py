"""Steps that change a conversation rather than go on with it: model, window, mode, going back.

Each is recorded in the session, and the context as it was is kept as a snapshot first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.clock import format_stamp
from ollm.domain.context import ModeName
from ollm.domain.errors import UsageError
from ollm.domain.events import ModeChanged
from ollm.domain.messages import Message
from ollm.domain.session import ModeTrigger
from ollm.domain.snapshot import SnapshotTrigger
from ollm.runtime.parts import ConversationParts
from ollm.services import modes


async def change_model(parts: ConversationParts, name: str) -> None:
    """Go on with another model of the same choice of servers."""
    chosen = await parts.choose_model(name)
    await take_snapshot(parts, "window")
    await parts.model.provider.close()
    parts.model = chosen
    parts.prompt.set_window(chosen.window, chosen.name)
    parts.update_tools()
    changes = {"model": chosen.name, "provider": chosen.provider.name, "contextWindow": chosen.window}
    await parts.session.update_metadata(changes)
    await record_step(parts, {"step": "model", "model": chosen.name, "window": chosen.window})


async def change_window(parts: ConversationParts, window: int) -> None:
    await take_snapshot(parts, "window")
    parts.model.window = window
    parts.prompt.set_window(window)
    parts.update_tools()
    await parts.session.update_metadata({"contextWindow": window})
    await record_step(parts, {"step": "window", "window": window})


async def change_mode(parts: ConversationParts, mode: ModeName, trigger: ModeTrigger, confidence: float) -> None:
    before = parts.prompt.mode
    if mode == before:
        return
    await take_snapshot(parts, "mode")
    parts.prompt.set_mode(mode)
    await apply_mode(parts, before, trigger, confidence)


async def apply_mode(parts: ConversationParts, before: ModeName, trigger: ModeTrigger, confidence: float = 1.0) -> None:
    """Tools, approval and history follow the mode the prompt is in now."""
    mode = parts.prompt.mode
    step = modes.make_mode_change(before, mode, trigger, confidence, clock=parts.clock)
    parts.mode_history.append(modes.to_history_entry(step))
    parts.late.policy.approval = modes.MODES[mode].approval or parts.approval
    parts.update_tools()
    await parts.session.update_metadata({"modeHistory": parts.mode_history})
    parts.stream.emit(ModeChanged(from_=before, to=mode, trigger=trigger, confidence=confidence))


async def restore_snapshot(parts: ConversationParts, snapshot_id: str) -> None:
    before = parts.prompt.mode
    context = await parts.late.snapshots.restore_snapshot(snapshot_id, parts.prompt.capture_state())
    parts.prompt.restore(context)
    if parts.prompt.mode != before:
        await apply_mode(parts, before, "manual")
    await record_step(parts, {"step": "restore", "snapshotId": snapshot_id})


async def rewind_context(parts: ConversationParts, number: int) -> str:
    """The context as it was before message `number`; gives that message's text. Nothing leaves the archive."""
    message = find_user_message(parts, number)
    await take_snapshot(parts, "rewind")
    context = parts.prompt.get_active_context()
    kept = tuple(entry for entry in context.messages if not entry.sources or max(entry.sources) < number)
    older = tuple(point for point in context.checkpoints if not point.message_ids or max(point.message_ids) < number)
    parts.prompt.restore(msgspec.structs.replace(context, messages=kept, checkpoints=older), cause="rewind")
    await record_step(parts, {"step": "rewind", "before": number})
    return message.text


def find_user_message(parts: ConversationParts, number: int) -> Message:
    """A message of the person's, by its number."""
    for message in parts.session.load().messages:
        if message.id == number and message.role == "user":
            return message
    raise UsageError(f"Message {number} is none of yours.", action="/history shows the numbers.")


async def take_snapshot(parts: ConversationParts, trigger: SnapshotTrigger) -> None:
    if parts.session.id is not None:
        await parts.late.snapshots.create_snapshot(parts.prompt.capture_state(), trigger)


async def record_step(parts: ConversationParts, step: dict[str, Any]) -> None:
    """A line of `contextHistory`."""
    parts.context_history.append({**step, "timestamp": format_stamp(parts.clock())})
    await parts.session.update_metadata({"contextHistory": parts.context_history})
