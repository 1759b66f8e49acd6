"""Fills a conversation with the state of its session, from the session, the workspace's record and the kept context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.runtime.resume.resume import ResumeSource, resume_prompt
from ollm.runtime.resume.saved_context import ResumePoint, read_saved_context
from ollm.services.snapshots import read_context
from ollm.store.session_files import MessagePage

if TYPE_CHECKING:
    from ollm.app.storage import Storage
    from ollm.domain.lazy import Lazy
    from ollm.domain.session import ChatSession, Session
    from ollm.runtime.parts import ConversationParts
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.runtime.session import ResumedSession

MAX_RECORD_MESSAGES = 1000  # newest messages, from which the workspace's record of a session it does not know is made


async def resume_session(
    storage: Storage, sessions: Lazy[WorkspaceContext], parts: ConversationParts, resumed: ResumedSession
) -> ResumePoint:
    """Fill the prompt with the session's state; gives the point from which it goes on."""
    session = resumed.session
    sessions.get().check_ownership(session)
    if session.metadata.workspace is None:
        await storage.session.update_metadata({"workspace": storage.session.workspace})
    if resumed.damage:
        storage.notices.append(f"The session file was damaged: {resumed.damage}")
    source = _find_source(storage, sessions, resumed)
    _restore_plan(storage, parts, source.record)
    how = resume_prompt(parts.prompt, source, full=storage.options.full)
    kept = source.kept
    newest = max((message.id for message in session.messages), default=kept.last_number if kept else 0)
    parts.state.mode_history.extend(session.metadata.mode_history)
    parts.state.context_history.extend(session.metadata.context_history)
    point = ResumePoint.from_prompt(parts.prompt, newest)
    parts.stream.session_id = session.session_id
    parts.prompt.set_session_id(session.session_id)
    storage.notices.extend([how] if how else [])
    return point


def _find_source(storage: Storage, sessions: Lazy[WorkspaceContext], resumed: ResumedSession) -> ResumeSource:
    session = resumed.session

    def load() -> Session:
        if resumed.skipped:
            return storage.session.load(MessagePage(None, MAX_RECORD_MESSAGES))
        return replace(session, messages=session.messages[-MAX_RECORD_MESSAGES:])

    return ResumeSource(
        session=session,
        load=storage.session.load,
        words=storage.session.load_user_messages,
        record=sessions.get().get_record(session, load),
        kept=read_saved_context(storage.scope.database.load_context(session.session_id)),
        snapshot=lambda name: read_context(storage.snapshot_files.load(name)),
    )


def _restore_plan(storage: Storage, parts: ConversationParts, record: ChatSession) -> None:
    parts.plan.set_paused(record.plan.paused)
    if record.plan.steps:
        storage.notes.restore_todos([(step.text, step.done) for step in record.plan.steps])
