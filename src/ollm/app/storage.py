"""Stores of one conversation (session, snapshots, goals, context entries), each opened on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, cast

import msgspec

from ollm.app.workspace import WorkspaceScope
from ollm.domain.events import Notice
from ollm.domain.lazy import LateObject
from ollm.runtime.base import EventStream
from ollm.runtime.changes import pause_plan
from ollm.runtime.resume.workspace_record import read_saved_context
from ollm.runtime.session import OpenSession
from ollm.services.context_manager import ContextManager
from ollm.services.goals import GoalKeeper
from ollm.services.loop_detection import LoopDetectionService
from ollm.services.snapshots import SnapshotManager, read_context
from ollm.services.token_counting import TokenCounter
from ollm.store.session_files.store import MessagePage
from ollm.store.workspace_place import find_untrusted_memory

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.domain.context import ModeName
    from ollm.domain.session import Session
    from ollm.runtime.base import ConversationOptions
    from ollm.runtime.model.model import Model
    from ollm.runtime.parts import ConversationParts
    from ollm.services.message_search.embeddings import SessionEmbedder
    from ollm.services.message_search.search import MessageMatch
    from ollm.services.message_search.session_archive import SessionArchive
    from ollm.store.notes import NoteStore
    from ollm.store.session_files.loading import LoadedSession
    from ollm.store.session_index.index import SessionIndex
    from ollm.store.session_index.session_texts import Vector
    from ollm.store.snapshot_files import SnapshotFiles


class Storage:
    """The session and its stores. `notices` collects messages to show when the conversation opens."""

    def __init__(self, scope: WorkspaceScope, options: ConversationOptions) -> None:
        self.scope = scope
        self.process = scope.process
        self.options = options
        self.notices: list[str] = []
        scope.report = self.report_problem
        self.resumed_mode: ModeName | None = None
        self.has_session = False  # A tool that is run by hand belongs to none.

    @cached_property
    def stream(self) -> EventStream:
        return EventStream(self.process.clock, redact=self.process.redact)

    @property
    def mode(self) -> ModeName:
        """Mode in which a conversation starts."""
        return self.options.mode or self.resumed_mode or self.process.settings.modes.default

    @cached_property
    def session(self) -> OpenSession:
        one_shot = "one-shot" if self.options.one_shot else None
        origin = "task" if self.options.parent else self.options.origin or one_shot
        recording = self.process.create_recording_service(self.stream.emit, self.counter.count_text)
        workspace = str(self.options.works_for or self.options.workspace)
        return OpenSession(recording, workspace, origin, self.process.clock, self.options.parent)

    @cached_property
    def counter(self) -> TokenCounter:
        """Token counter of the archive and the prompt, calibrated once the model is known."""
        return TokenCounter()

    @cached_property
    def snapshots(self) -> SnapshotManager:
        settings = self.process.settings.snapshots
        files = cast("SnapshotFiles", LateObject(lambda: self.snapshot_files))
        return SnapshotManager(files, settings, emit=self.stream.emit, clock=self.process.clock)

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        from ollm.store.snapshot_files import SnapshotFiles

        return SnapshotFiles(self.process.home.snapshots)

    @cached_property
    def notes(self) -> NoteStore:
        """Workspace memory with the todos of this session, or with unowned todos if there is no session."""
        notes = self.scope.notes
        if self.has_session:
            notes.get_todo_owner = lambda: self.session.id or self.session.draft_id
        return notes

    def report_problem(self, text: str) -> None:
        """Report a problem when the conversation opens, or at once if it is open."""
        self.notices.append(text)
        self.stream.emit(Notice(level="warning", text=text))

    @cached_property
    def goals(self) -> GoalKeeper:
        return GoalKeeper(clock=self.process.clock)

    @cached_property
    def entries(self) -> ContextManager:
        return ContextManager(self.process.clock, lambda text: self.stream.emit(Notice(level="warning", text=text)))

    def create_loop_detection(self) -> LoopDetectionService:
        settings = self.process.settings.loop_detection
        if self.options.max_steps is not None:
            settings = msgspec.structs.replace(settings, max_turns=self.options.max_steps, enabled=True)
        return LoopDetectionService(settings, self.stream.emit)

    @cached_property
    def archive(self) -> SessionArchive:
        from ollm.services.message_search.session_archive import SessionArchive

        embedder = self.embedder
        return SessionArchive(self.load_archive, self.search_archive, embedder.embed_queries if embedder else None)

    @cached_property
    def embedder(self) -> SessionEmbedder | None:
        """Embedder for semantic search, or None unless a model is configured for it."""
        if not self.process.settings.roles.embedding:
            return None
        from ollm.services.message_search.embeddings import SessionEmbedder, find_embedding_server

        server = find_embedding_server(self.process.settings, self.process.environment)
        return SessionEmbedder(server, self.open_index) if server else None

    def open_index(self) -> SessionIndex:
        """Open the index with a separate connection, for use in a thread."""
        from ollm.store.session_index.index import SessionIndex

        return SessionIndex(self.process.home.index, self.process.sessions_directory)

    def search_archive(
        self, queries: Sequence[str], limit: int, vectors: Sequence[Vector]
    ) -> tuple[list[MessageMatch], bool]:
        """Search this session's messages; False if the newest are not indexed yet. Runs in a thread."""

        from ollm.services.message_search.search import search_messages
        from ollm.store.session_index.session_texts import SessionTexts

        if not self.session.id:
            return [], True
        session_id, model = self.session.id, self.embedder.server.model if self.embedder else ""
        with closing(self.open_index()) as index:

            def search() -> tuple[list[MessageMatch], bool]:
                texts = SessionTexts(index, session_id)
                found = search_messages(texts, queries, limit, model, vectors)
                return found, not texts.is_behind

            answer: tuple[list[MessageMatch], bool] = index.run_guarded(search)
            return answer

    async def load_archive(self, page: MessagePage | None) -> Session | None:
        """Load the session, or a page of it, for `recall`. Returns None before there is one."""
        return await asyncio.to_thread(self.session.load, page) if self.session.id else None

    def export_session(self, session_id: str, target: Path) -> None:
        """Write a session to a new file, in the format given by its name."""
        from ollm.services.session_export import render_export
        from ollm.services.session_export.target import check_target, choose_format, write_export

        check_target(target, force=False, otherwise="Choose another name.")
        form = choose_format(target)
        with self.process.session_files.open_reader(session_id) as reader:
            write_export(target, render_export(reader, form), self.process.home.exports)


def find_wanted_session(storage: Storage) -> str | None:
    """Return the id of the session to resume, or None for a new one."""
    options = storage.options
    if options.session:
        return storage.scope.find_session(options.session)
    if not options.newest:
        return None
    listed = storage.scope.context.list_counted_sessions()
    saved = storage.scope.context.database.load_context
    begun = (found for found, messages in listed if messages or saved(found.session_id))  # Goals begin one too.
    here = (found for found in begun if storage.scope.works_here(found.workspace))
    unarchived = [found for found in here if found.status != "archived"]
    none = "All sessions of this workspace are in use" if unarchived else "No session in this workspace yet"
    if options.beside:
        unarchived = [one for one in unarchived if not storage.process.session_files.is_open(one.session_id)]
    if options.interactive and unarchived:
        one_shots = storage.scope.context.list_one_shot_ids()
        unarchived = [found for found in unarchived if found.session_id not in one_shots] or unarchived
    if not unarchived:
        storage.notices.append(f"{none}; starting a new one.")
        report_unused_memory(storage)
    return unarchived[0].session_id if unarchived else None


def report_unused_memory(storage: Storage) -> None:
    """Explain why memory that came with a moved or foreign folder is not used."""
    if found := find_untrusted_memory(storage.scope.main, storage.process.home):
        storage.notices.append(
            f"{found} came with this folder and is not used. If the folder is yours (moved, say), run `ollm trust`."
        )


MAX_RECORD_MESSAGES = 1000  # More would make a resume slow.


async def resume_session(storage: Storage, parts: ConversationParts, resumed: LoadedSession) -> int:
    """Fill the prompt with the session's state and return the number of its newest message."""
    from ollm.runtime.resume.resume import ResumeSource, resume_prompt

    session = resumed.session
    storage.scope.context.check_ownership(session)
    await _note_changes(storage, parts.state.model, resumed)
    source = ResumeSource(
        session=session,
        load=storage.session.load,
        record=storage.scope.context.get_record(session, lambda: _load_newest(storage, resumed)),
        kept=read_saved_context(storage.scope.database.load_context(session.session_id)),
        snapshot=lambda name: read_context(storage.snapshot_files.load(name)),
    )
    pause_plan(parts, source.record.plan.paused)
    if steps := source.record.plan.steps:
        storage.notes.restore_todos([(step.text, step.done) for step in steps])
    how = resume_prompt(parts.prompt, source, full=storage.options.full)
    kept = source.kept
    newest = max((message.id for message in session.messages), default=kept.last_number if kept else 0)
    parts.stream.session_id = session.session_id
    parts.prompt.set_session_id(session.session_id)
    if how and (price := parts.state.model.describe_reading(parts.prompt.used_tokens)):
        how += f" Your next message {price}, unless the server still has them cached."
    storage.notices.extend([how] if how else [])
    return newest


async def _note_changes(storage: Storage, model: Model, resumed: LoadedSession) -> None:
    """Tell if the session worked elsewhere or was damaged; from now on it works here, in the model's window."""
    before, window = resumed.session.metadata.workspace, resumed.session.metadata.context_window
    is_former, works_here = storage.scope.context.is_former(before), storage.scope.works_here(before)
    if is_former:
        storage.notices.append(f"This folder was moved from {before}; continuing here.")
    elif not works_here:
        storage.notices.append(f"This session worked in {before}; continuing in {storage.scope.path}.")
    stays = works_here or before in storage.scope.context.load_origins().values()  # It still belongs to the original.
    if is_former or not stays or before is None:
        await storage.session.update_metadata({"workspace": storage.session.workspace})
    if model.name == resumed.session.model and model.window != window:
        await storage.session.update_metadata({"contextWindow": model.window})
    if resumed.damage:
        storage.notices.append(f"The session file was damaged: {resumed.damage}")


def _load_newest(storage: Storage, resumed: LoadedSession) -> Session:
    if resumed.skipped:
        return storage.session.load(MessagePage(None, MAX_RECORD_MESSAGES))
    return msgspec.structs.replace(resumed.session, messages=resumed.session.messages[-MAX_RECORD_MESSAGES:])
