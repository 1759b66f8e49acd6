"""The active context of a session that is not open, put together from its archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ollm.domain.context import ActiveContext, Checkpoint, CompressionRecord, ModeName, format_number_ranges
from ollm.domain.errors import OllmError
from ollm.domain.messages import Message, PromptMessage
from ollm.domain.session import Session
from ollm.runtime.changes import find_open_rewinds
from ollm.runtime.prompt.rendering import render_message
from ollm.services.chat_compression.folding import merge_folded_lines
from ollm.services.chat_compression.users import USER_LINE_ID
from ollm.services.modes import MODES

DEFAULT_MODE: ModeName = "code"
STEPS_BACK = ("restore", "rewind", "redo")
LoadSnapshot = Callable[[str], ActiveContext]


def rebuild_context(session: Session, snapshot: LoadSnapshot | None = None) -> ActiveContext:
    """What was said since the last step back, and the checkpoints of what was folded before.

    A restored snapshot is the beginning when it can still be loaded; otherwise the archive alone is.
    """
    base, begin = _find_beginning(session, snapshot)
    records = [record for record in _read_compression_records(session) if record.timestamp > begin]
    messages = [message for message in _drop_rewound_messages(session) if message.timestamp > begin or not begin]
    calls = {call.id: call for call in session.tool_calls}
    rendered = [entry for message in messages for entry in render_message(message, calls)]
    gone = {number for record in records for number in record.message_ids}
    checkpoints = _merge_checkpoints([*base.checkpoints], records)
    cited = {number for found in checkpoints for number in found.message_ids}
    kept = [entry for entry in (*base.messages, *rendered) if not entry.sources or not set(entry.sources) <= gone]
    uncited = [entry for entry in rendered if entry.sources and set(entry.sources) <= gone - cited]
    return msgspec.structs.replace(
        base,
        messages=(*_fold_uncited_messages(uncited), *kept),
        checkpoints=(*_build_user_line(uncited, begin), *checkpoints),
        mode=find_last_mode(session) or (base.mode if begin else DEFAULT_MODE),
        folded=base.folded or bool(gone),
    )


def rebuild_before_rewind(session: Session, snapshot: LoadSnapshot | None = None) -> ActiveContext:
    """The context as it was before the last rewind, which is taken back."""
    metadata = session.metadata
    history = (*metadata.context_history, {"step": "redo"})
    replace = msgspec.structs.replace
    return rebuild_context(replace(session, metadata=replace(metadata, context_history=history)), snapshot)


def ends_with_step_back(session: Session) -> bool:
    """Whether the last thing that happened to the context was a step back or its redo; a kept context is then stale."""
    steps = [step for step in session.metadata.context_history if step.get("step") in STEPS_BACK]
    last = max((message.timestamp for message in session.messages), default="")
    return bool(steps) and str(steps[-1].get("timestamp", "")) > last


def collect_user_messages(session: Session) -> dict[int, str]:
    """The user's messages in full, by number."""
    return {message.id: message.text for message in session.messages if message.role == "user"}


def _find_beginning(session: Session, snapshot: LoadSnapshot | None) -> tuple[ActiveContext, str]:
    steps = [step for step in session.metadata.context_history if step.get("step") == "restore"]
    if not steps or snapshot is None:
        return ActiveContext(), ""
    try:
        return snapshot(str(steps[-1].get("snapshotId"))), str(steps[-1].get("timestamp", ""))
    except OllmError:
        return ActiveContext(), ""


def _drop_rewound_messages(session: Session) -> list[Message]:
    """Without what a step back took out of the context; what was said after it stays."""
    messages = list(session.messages)
    for step in find_open_rewinds(session.metadata.context_history):
        before, moment = step.get("before"), str(step.get("timestamp", ""))
        if step.get("step") == "rewind" and isinstance(before, int):
            messages = [m for m in messages if m.id < before or m.timestamp > moment]
    return messages


def _read_compression_records(session: Session) -> list[CompressionRecord]:
    """Those that can be read: an archive may come from another version."""
    found: list[CompressionRecord] = []
    for record in session.metadata.compression_history:
        try:
            found.append(msgspec.convert(record, CompressionRecord))
        except msgspec.ValidationError:
            continue
    return found


def _merge_checkpoints(standing: list[Checkpoint], records: Sequence[CompressionRecord]) -> list[Checkpoint]:
    for record in records:
        if record.checkpoint is None:
            continue
        covered = set(record.checkpoint.message_ids)
        standing = [old for old in standing if not old.message_ids or not set(old.message_ids) <= covered]
        standing.append(record.checkpoint)
    return standing


def _fold_uncited_messages(uncited: Sequence[PromptMessage]) -> list[PromptMessage]:
    """What was folded without a checkpoint becomes one line with its numbers."""
    folded = [entry for entry in uncited if entry.role != "user"]
    return [merge_folded_lines(folded)] if folded else []


def _build_user_line(uncited: Sequence[PromptMessage], moment: str) -> list[Checkpoint]:
    ids = tuple(sorted({number for entry in uncited if entry.role == "user" for number in entry.sources}))
    if not ids:
        return []
    text = f"User messages {format_number_ranges(ids)} are kept in the archive in full."
    return [
        Checkpoint(
            id=USER_LINE_ID, text=text, message_ids=ids, timestamp=moment, tokens=40, age="compact", engine_written=True
        )
    ]


def find_last_mode(session: Session) -> ModeName | None:
    """The mode it was last in; None when it never changed."""
    last: dict[str, Any] = session.metadata.mode_history[-1] if session.metadata.mode_history else {}
    return next((name for name in MODES if name == last.get("to")), None)
