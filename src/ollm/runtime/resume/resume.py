"""Resumes a session (W).

If model, window and mode are unchanged, the model gets exactly the previous context, so that a server's cache still
fits. Otherwise it gets the recent messages, and the engine's own summary goes with the next message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ollm.domain.context import ActiveContext, Checkpoint, CompressionRecord, ModeName, format_number_ranges
from ollm.domain.errors import OllmError
from ollm.domain.messages import Message, PromptMessage
from ollm.domain.session import ChatSession, PlanState, Session
from ollm.domain.struct import Data
from ollm.runtime.changes import PAUSED_TEXT, find_open_rewinds
from ollm.runtime.prompt.messages import render_messages
from ollm.runtime.prompt.prompt import Prompt
from ollm.runtime.resume.workspace_record import RESUMED_ENTRY_KEY, SavedContext
from ollm.services.chat_compression.folding import USER_LINE_ID, merge_folded_lines
from ollm.services.modes import MODES
from ollm.services.workspace_memory import from_records

DEFAULT_MODE: ModeName = "code"
STEPS_BACK = ("restore", "rewind", "redo")
LoadSnapshot = Callable[[str], ActiveContext]


def rebuild_context(session: Session, snapshot: LoadSnapshot | None = None) -> ActiveContext:
    """Rebuild the context from the messages since the last step back and the checkpoints of compacted ones.

    Starts from a restored snapshot if it can still be loaded, otherwise from the archive alone.
    """
    base, begin = _find_beginning(session, snapshot)
    records = [record for record in _read_compression_records(session) if record.timestamp > begin]
    messages = [message for message in _drop_rewound_messages(session) if message.timestamp > begin or not begin]
    rendered = render_messages(messages, session.tool_calls)
    gone = {number for record in records for number in record.message_ids}
    checkpoints = _merge_checkpoints([*base.checkpoints], records)
    cited = {number for found in checkpoints for number in found.message_ids}
    kept = [entry for entry in (*base.messages, *rendered) if not entry.sources or not set(entry.sources) <= gone]
    uncited = [entry for entry in rendered if entry.sources and set(entry.sources) <= gone - cited]
    folded = [entry for entry in uncited if entry.role != "user"]  # They were compacted without a checkpoint.
    return msgspec.structs.replace(
        base,
        messages=(*([merge_folded_lines(folded)] if folded else []), *kept),
        checkpoints=(*_build_user_line(uncited, begin), *checkpoints),
        mode=find_last_mode(session) or (base.mode if begin else DEFAULT_MODE),
        folded=base.folded or bool(gone),
    )


def rebuild_before_rewind(session: Session) -> ActiveContext:
    """Rebuild the context from before the last rewind, which is undone."""
    metadata = session.metadata
    history = (*metadata.context_history, {"step": "redo"})
    replace = msgspec.structs.replace
    return rebuild_context(replace(session, metadata=replace(metadata, context_history=history)))


def ends_with_step_back(session: Session) -> bool:
    """Return True if the last change to the context was a step back or its redo. A saved context is then stale."""
    steps = [step for step in session.metadata.context_history if step.get("step") in STEPS_BACK]
    last = max((message.timestamp for message in session.messages), default="")
    return bool(steps) and str(steps[-1].get("timestamp", "")) > last


def _find_beginning(session: Session, snapshot: LoadSnapshot | None) -> tuple[ActiveContext, str]:
    steps = [step for step in session.metadata.context_history if step.get("step") == "restore"]
    if not steps or snapshot is None:
        return ActiveContext(), ""
    try:
        return snapshot(str(steps[-1].get("snapshotId"))), str(steps[-1].get("timestamp", ""))
    except OllmError:
        return ActiveContext(), ""


def _drop_rewound_messages(session: Session) -> list[Message]:
    """Drop the messages that a step back removed from the context. Later messages stay."""
    messages = list(session.messages)
    for step in find_open_rewinds(session.metadata.context_history):
        before, moment = step.get("before"), str(step.get("timestamp", ""))
        if step.get("step") == "rewind" and isinstance(before, int):
            messages = [m for m in messages if m.id < before or m.timestamp > moment]
    return messages


def _read_compression_records(session: Session) -> list[CompressionRecord]:
    """Return the readable records: an archive may come from another version."""
    found: list[CompressionRecord] = []
    for record in session.metadata.compression_history:
        with suppress(msgspec.ValidationError):
            found.append(msgspec.convert(record, CompressionRecord))
    return found


def _merge_checkpoints(standing: list[Checkpoint], records: Sequence[CompressionRecord]) -> list[Checkpoint]:
    for record in records:
        if record.checkpoint is None:
            continue
        covered = set(record.checkpoint.message_ids)
        standing = [old for old in standing if not old.message_ids or not set(old.message_ids) <= covered]
        standing.append(record.checkpoint)
    return standing


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
    """Return the last mode of the session, or None if it never changed."""
    last: dict[str, Any] = session.metadata.mode_history[-1] if session.metadata.mode_history else {}
    return next((name for name in MODES if name == last.get("to")), None)


EXACTLY = "Resumed with full context."
NOTE_PERCENT = 8
RESUME_INTRO = "This conversation is resumed. Its state so far, written by the program:"
RESUME_OUTRO = "Continue from here; look up older messages with recall when you need them."


class ResumeSource(Data, frozen=True):
    """The data for resuming a session: at least its newest messages, and `load` for all of it.

    `snapshot` loads the context of a restored snapshot."""

    session: Session
    load: Callable[[], Session]
    record: ChatSession
    kept: SavedContext | None
    snapshot: LoadSnapshot


def resume_prompt(prompt: Prompt, source: ResumeSource, *, full: bool) -> str:
    """Fill the prompt. Return how, and why the exact context was not used, or "" if the session is empty."""
    session, record, kept, snapshot = source.session, source.record, source.kept, source.snapshot
    if kept is None and not session.messages and not source.load().messages:
        return ""
    how = "Session resumed."
    restore_entries(prompt, kept)
    forked = kept is None and bool(session.metadata.parent)  # It was not resumed yet.
    if full or forked or ends_with_step_back(session) or _is_far_behind(prompt, session, kept):
        whole = keep_newest_messages(prompt, rebuild_context(source.load(), snapshot))
        prompt.restore(msgspec.structs.replace(whole, mode=prompt.mode), cause="resume")
    else:
        context, why = check_saved_context(prompt, kept)
        recent = add_own_fields(from_records(record.recent_messages), session)
        # Older messages are missing, so the context counts as compacted.
        seed = ActiveContext(messages=recent, mode=prompt.mode, folded=True)
        prompt.restore(context or seed, cause="resume")
        how = EXACTLY if context else f"Resumed from a summary and recent messages: {why}."
        if context and kept:
            prompt.snapshot_armed = kept.armed
            prompt.meter.resume_count(kept.counted)
            if not kept.goals_told:
                prompt.tell_goals_again()
            add_newer_messages(prompt, session, kept.last_number)
    if kept and not prompt.goals.stack.goals and not ends_with_step_back(session):
        prompt.goals.stack = kept.context.goals  # They outlive a change of model or window.
    if how != EXACTLY and not forked and not ends_with_step_back(session):
        tell_where_it_stood(prompt, record)
    return how


def add_own_fields(recent: Sequence[PromptMessage], session: Session) -> tuple[PromptMessage, ...]:
    """Add what only the archive keeps of each answer: its thinking, and the server's ids of its calls."""
    archived = {entry.sources: entry for entry in render_messages(session.messages, session.tool_calls) if entry.origin}
    replace, whole = msgspec.structs.replace, list[PromptMessage]()
    for entry in recent:
        own = archived.get(entry.sources, entry)
        ids = {call.id: call.wire_id for call in own.calls}
        calls = tuple(replace(call, wire_id=ids.get(call.id, "")) for call in entry.calls)
        fields = {name: getattr(own, name) for name in ("origin", "thinking", "thinking_field", "thinking_details")}
        whole.append(replace(entry, calls=calls, **fields))
    return tuple(whole)


def tell_where_it_stood(prompt: Prompt, record: ChatSession) -> None:
    """Add the engine's own note to the next message, once. Used only if the context is not the previous one."""
    most = prompt.model.window * NOTE_PERCENT // 100
    text = build_resume_message(record.summary, record.plan)
    while (tokens := prompt.counter.count_text(text)) > most and len(text) > 200:
        summary = clip_lines(record.summary, int(len(record.summary) * 0.9 * most / tokens))
        record = msgspec.structs.replace(record, summary=summary)
        text = build_resume_message(summary, record.plan)
    prompt.entries.add_context(RESUMED_ENTRY_KEY, text, source="system", volatile=True)


def clip_lines(text: str, characters: int) -> str:
    """Keep whole lines from the beginning, which has the most important facts."""
    cut = text[: max(0, characters)]
    return cut[: cut.rfind("\n")] if "\n" in cut and len(cut) < len(text) else cut


def check_saved_context(prompt: Prompt, found: SavedContext | None) -> tuple[ActiveContext | None, str]:
    """Return the previous context, or why it cannot be used."""
    if found is None:
        return None, "no saved context"
    if found.model != prompt.model.model:
        return None, f"the model was {found.model}"
    if found.window != prompt.model.window:
        return None, f"the context window was {found.window:,}"
    if found.mode != prompt.mode:
        return None, f"the mode was {found.mode}"
    return found.context, ""


def fill_prompt_for_viewing(
    prompt: Prompt, session: Session, kept: SavedContext | None, snapshot: LoadSnapshot
) -> None:
    """Fill the prompt for viewing only: from the saved context, else from the archive."""
    restore_entries(prompt, kept)
    if kept and kept.ledger:
        prompt.ledger.entries.append(kept.ledger)
    stale = ends_with_step_back(session) or _is_far_behind(prompt, session, kept)
    context = None if stale else check_saved_context(prompt, kept)[0]
    whole = keep_newest_messages(prompt, rebuild_context(session, snapshot))
    rest = msgspec.structs.replace(whole, mode=prompt.mode)
    prompt.load_words = lambda: {message.id: message.text for message in session.messages if message.role == "user"}
    prompt.restore(context or rest)
    if context and kept:
        add_newer_messages(prompt, session, kept.last_number)


def restore_entries(prompt: Prompt, found: SavedContext | None) -> None:
    """Restore the user's context entries, which stay until the user removes them."""
    for entry in found.entries if found else ():
        prompt.entries.restore_entry(entry)


def add_newer_messages(prompt: Prompt, session: Session, last_number: int) -> None:
    """Add messages that were recorded after the context was saved, before a crash."""
    calls = {call.id: call for call in session.tool_calls}
    for message in session.messages:
        if message.id > last_number:
            prompt.add_message(message, calls)


def _is_far_behind(prompt: Prompt, session: Session, kept: SavedContext | None) -> bool:
    """Return True if too much was recorded since the context was saved: the session continued elsewhere."""
    newer = [message for message in session.messages if kept and message.id > kept.last_number]
    return bool(newer) and _find_fitting(prompt, render_messages(newer, session.tool_calls)) > 0


def _find_fitting(prompt: Prompt, messages: Sequence[PromptMessage]) -> int:
    """Return the index from which these messages take at most a window. Compaction makes them fit."""
    left, place = prompt.model.window, len(messages)
    while place and (left := left - prompt.counter.count_message(messages[place - 1])) >= 0:
        place -= 1
    return place


def keep_newest_messages(prompt: Prompt, context: ActiveContext) -> ActiveContext:
    """Keep the newest messages of a long archive, from a user message on, and a line with the others' numbers."""
    messages, place = context.messages, _find_fitting(prompt, context.messages)
    if place == 0:
        return context
    begins = (at for at in range(place, len(messages)) if messages[at].role == "user")
    begin = next(begins, max(at for at, entry in enumerate(messages) if entry.role != "tool"))
    line = merge_folded_lines(messages[:begin])
    return msgspec.structs.replace(context, messages=(line, *messages[begin:]), folded=True)


def build_resume_message(summary: str, plan: PlanState) -> str:
    lines = [RESUME_INTRO, summary or "No notes."]
    if plan.current_step and not plan.current_step.done:
        lines.append(f"Current step: {plan.current_step.text}")
    if plan.paused:
        lines.append(PAUSED_TEXT)
    return "\n".join([*lines, RESUME_OUTRO])
