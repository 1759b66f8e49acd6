"""Closed sessions: their context, read from the archive, their snapshots, rewind and redo."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.app.interrupted_restore import name_restore, recover_restore
from ollm.app.process import ProcessScope
from ollm.app.storage import Storage
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.domain.errors import OllmError, StorageError
from ollm.domain.events import Notice
from ollm.domain.lazy import Lazy
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.providers.window import FALLBACK_WINDOW_TOKENS
from ollm.runtime.base import ConversationOptions
from ollm.runtime.changes import describe_redo, find_redoable_step, find_user_message, is_rewound, make_redo_step
from ollm.runtime.commands.base import fence_text
from ollm.runtime.prompt.prefix import count_instruction_tokens
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.runtime.resume.resume import fill_prompt_for_viewing, find_last_mode
from ollm.runtime.resume.workspace_record import read_saved_context
from ollm.runtime.rewind import (
    RewindFlow,
    Step,
    changes_nothing,
    describe_nothing,
    describe_outcome,
    describe_plan,
    describe_result,
    filter_files,
    find_scope,
    make_rewind_step,
    render_diffs,
    to_plain_data,
)
from ollm.services.file_checkpoints.restore import InterruptedRestore, RestoreScope
from ollm.services.modes import make_mode_change
from ollm.services.snapshots import read_context
from ollm.services.token_counting import TokenCounter
from ollm.store.workspace_db import WorkspaceDatabase
from ollm.store.workspace_place import find_database
from ollm.tools.framework.tool_selection import select_tools

if TYPE_CHECKING:
    from ollm.app.conversation import ConversationScope
    from ollm.domain.events import Event
    from ollm.domain.session import ContextSnapshot, Session
    from ollm.runtime.model.model import Model
    from ollm.services.chat_recording.service import ChatRecordingService
    from ollm.services.file_checkpoints.restore import RestoreResult
    from ollm.services.file_checkpoints.tree import RestorePlan

SEEN_WITH = "with `ollm sessions view`"
NO_CHANGES = "No files were changed since then."


class ClosedSession:
    """A closed session: its context, read from the archive, and its snapshots. A server is contacted only to choose
    the model of a new session."""

    def __init__(self, process: ProcessScope, workspace: Path) -> None:
        self.process = process
        self.workspace = workspace
        self.events: list[Event] = []
        storage = Storage(WorkspaceScope(process, workspace), ConversationOptions(workspace=workspace))
        storage.stream.add_listener(self.events.append)
        self.snapshots, self.snapshot_files = storage.snapshots, storage.snapshot_files

    def create_recording_service(self) -> ChatRecordingService:
        return self.process.create_recording_service(self.events.append)

    async def take_snapshot(self, session_id: str) -> ContextSnapshot | None:
        """Take a snapshot of the archived context. Returns None if refused; `events` has the reason."""
        session = self.process.session_files.read(session_id).session
        return await self.snapshots.create_snapshot(self.build_prompt(session).capture_state(), "manual")

    async def restore_snapshot(self, snapshot_id: str) -> str:
        """Make a session resume from a snapshot next time, and return its id. Raises BusyError if it is open."""
        session_id = self.snapshot_files.find_session(snapshot_id)
        recording = self.create_recording_service()
        session = (await recording.open_session(session_id)).session
        try:
            now = self.build_prompt(session)
            context = await self.snapshots.restore_snapshot(snapshot_id, now.capture_state())
            changes = self.add_step(session, {"step": "restore", "snapshotId": snapshot_id})
            if context.mode != now.mode:
                mode = make_mode_change(now.mode, context.mode, "manual", clock=self.process.clock)
                changes["modeHistory"] = [*session.metadata.mode_history, mode]
            await recording.update_metadata(session_id, changes)
        finally:
            await recording.close_session(session_id)
        return session_id

    def add_step(self, session: Session, step: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata of the session with one more step of its context."""
        stamped = {**step, "timestamp": format_stamp(self.process.clock())}
        return {"contextHistory": [*session.metadata.context_history, stamped]}

    def explain_refusal(self) -> str:
        """Return the notices that explain a refusal."""
        notices = [event.text for event in self.events if isinstance(event, Notice)]
        return " ".join(notices) or "No snapshot was taken."

    async def choose_model(self) -> Model | None:
        """Choose the model of a new session, or return None if no server answers."""
        try:
            model = await self.process.model_chooser.choose()
        except OllmError:
            return None
        await model.provider.close()
        return model

    def build_prompt(self, session: Session | None, chosen: Model | None = None) -> Prompt:
        """Build the prompt of this session, or of a new one with the `chosen` model."""
        settings = self.process.settings
        known = session.metadata.context_window if session else None
        model = PromptModel(
            session_id=session.session_id if session else "",
            model=(session.model if session else chosen.name if chosen else settings.provider.model) or "",
            window=known or (chosen.window if chosen else settings.provider.context_window) or FALLBACK_WINDOW_TOKENS,
            mode=(find_last_mode(session) if session else None) or settings.modes.default,
        )
        kept = read_saved_context(self._read_saved_context(session.session_id) if session else None)
        facts = chosen.facts if chosen else None
        counter = TokenCounter(kept.counted_factor if kept else facts.token_factor if facts else 1.0)
        scope = self._create_scope()
        scope.add_project_instructions()
        scope.add_notes()
        prompt = Prompt(model, settings, counter, scope.storage.entries)
        if session:
            fill_prompt_for_viewing(prompt, session, kept, lambda name: read_context(self.snapshot_files.load(name)))
        if forms := (kept.forms if kept else facts):
            prompt.set_forms(forms)
        tools = select_tools(
            prompt.mode,
            scope.toolbox.registry.list(),
            model.window,
            folded=prompt.get_active_context().folded,
            instruction_tokens=count_instruction_tokens(model.window, prompt.mode),
        )
        prompt.set_tools(tools)
        return prompt

    def _create_scope(self) -> ConversationScope:
        from ollm.app.conversation import ConversationScope

        scope = WorkspaceScope(self.process, self.workspace)
        return ConversationScope(scope, ConversationOptions(workspace=self.workspace), AsyncExitStack())

    def _read_saved_context(self, session_id: str) -> bytes | None:
        """Load the context saved after the last turn. Never creates a database."""
        place = find_database(WorkspaceScope(self.process, self.workspace).main, self.process.home)
        if place is None:
            return None
        database = WorkspaceDatabase(place)
        try:
            return database.load_context(session_id)
        except StorageError:
            return None
        finally:
            database.close()


class RewindOutcome(Data, frozen=True):
    """Outcome of a rewind, done or previewed; `text` describes it for people."""

    session_id: str
    message_id: int
    what: RestoreScope
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str


class ClosedRewind:
    """Rewind of a closed session, once. Raises BusyError if it is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)
        self._checkpoints = Lazy(self._scope.create_checkpoints)
        self._notes: list[str] = []  # about a rewind that was interrupted

    async def run(
        self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True, diff: bool = False
    ) -> RewindOutcome:
        """Rewind to before a message. A preview (`dry_run`) writes nothing and completes no interrupted rewind."""
        what: RestoreScope = "both" if files and talk else "files" if files else "talk"
        async with self._begin(dry_run=dry_run) as (killed, session, flow):
            done = killed.journal if killed and not force else None
            same = done and ("rewind", number, what) == (done.kind, done.message_id, done.scope)
            if killed and (same or dry_run):
                return self._repeat(killed, dry_run=dry_run)
            find_user_message(session, number, SEEN_WITH)
            plan = await flow.plan(number, force=force) if files else None
            if dry_run:
                lines = await self._describe_preview(number, what, plan, diff=diff)
                return self._make_outcome(number, what, lines, plan, dry_run=True)
            if changes_nothing(plan, talk=talk and not is_rewound(session, number)):
                text = describe_nothing(number, plan, files_only=what == "files")
                return self._make_outcome(number, what, [text], plan)
            result = await flow.run(make_rewind_step(number, what), what, plan)
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        said = describe_result(result) if result else NO_CHANGES if files else ""
        return self._make_outcome(number, what, [head, said], result)

    async def _describe_preview(
        self, number: int, what: RestoreScope, plan: RestorePlan | None, *, diff: bool
    ) -> list[str]:
        talk = f"Would remove message {number} and everything after it from the context." if what != "files" else ""
        lines = [talk, "" if what == "talk" else describe_plan(plan) if plan else NO_CHANGES]
        if plan and diff and (diffs := await asyncio.to_thread(render_diffs, self._checkpoints.get(), plan.files)):
            lines.append("\n" + fence_text("\n".join(diffs), "diff"))
        return lines

    async def redo(self, *, force: bool, dry_run: bool) -> RewindOutcome:
        """Undo the last rewind."""
        async with self._begin(dry_run=dry_run) as (killed, session, flow):
            if killed and (killed.journal.kind == "redo" or dry_run):
                return self._repeat(killed, dry_run=dry_run)
            step = find_redoable_step(session, force=force)
            plan = await flow.plan_redo(step, force=force)
            done: RestorePlan | RestoreResult | None = plan
            if dry_run:
                lines = [f"Would take back the rewind to before message {step['before']}."]
                lines += [describe_plan(plan)] if plan else []
            else:
                done = result = await flow.run(make_redo_step(step, {}), find_scope(step), plan)
                lines = [describe_redo(step), *([describe_result(result)] if result else [])]
        return self._make_outcome(int(step["before"]), find_scope(step), lines, done, dry_run=dry_run)

    @asynccontextmanager
    async def _begin(self, *, dry_run: bool) -> AsyncIterator[tuple[InterruptedRestore | None, Session, RewindFlow]]:
        """Complete an interrupted rewind and open the session; only look at both for a preview."""
        recording = self._closed.create_recording_service()

        async def record(step: Step) -> None:
            if step["step"] == "rewind":
                prompt = self._closed.build_prompt(session)
                made = await self._closed.snapshots.create_snapshot(prompt.capture_state(), "rewind")
                step["snapshotId"] = made.id if made else None
            await recording.update_metadata(self._session_id, self._closed.add_step(session, step))

        try:
            if dry_run:
                found = await self._find_interrupted()
                session = self._closed.process.session_files.read(self._session_id).session
            else:
                found = await recover_restore(self._scope, self._notes.append)
                session = (await recording.open_session(self._session_id)).session
            own = found if found and found.journal.session_id == self._session_id else None
            yield own, session, RewindFlow(session, self._checkpoints, record)
        except OllmError as error:
            error.message = "\n".join([*self._notes, error.message])
            raise
        finally:
            if not dry_run:
                await recording.close_session(self._session_id)
            self._scope.close()

    async def _find_interrupted(self) -> InterruptedRestore | None:
        found = await asyncio.to_thread(self._checkpoints.get().find_interrupted)
        if found:
            left = format_count(len(filter_files(found.result)), "file")
            self._notes.append(f"{name_restore(found)} was interrupted and is completed first: {left} to go.")
        return found

    def _repeat(self, killed: InterruptedRestore, *, dry_run: bool) -> RewindOutcome:
        """Return the interrupted rewind as the outcome."""
        return self._make_outcome(killed.journal.message_id, killed.journal.scope, [], killed.result, dry_run=dry_run)

    def _make_outcome(
        self,
        number: int,
        what: RestoreScope,
        lines: list[str],
        done: RestorePlan | RestoreResult | None,
        *,
        dry_run: bool = False,
    ) -> RewindOutcome:
        data = to_plain_data(done) if done else {"files": [], "skipped": []}
        text = "\n".join(filter(None, [*self._notes, *lines]))
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=dry_run, text=text, **data
        )
