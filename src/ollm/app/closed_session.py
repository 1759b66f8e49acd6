"""Closed sessions: their context, read from the archive, their snapshots, rewind and redo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.app.conversation import ConversationScope
from ollm.app.interrupted_restore import add_step, recover_restore
from ollm.app.process import ProcessScope
from ollm.app.storage import Storage
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import OllmError, StorageError
from ollm.domain.events import Notice
from ollm.domain.lazy import Lazy
from ollm.providers.window import FALLBACK_WINDOW_TOKENS
from ollm.runtime.base import ConversationOptions
from ollm.runtime.prompt.compaction import shed_old_thinking
from ollm.runtime.prompt.prefix import count_instruction_tokens
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.runtime.resume.resume import fill_prompt_for_viewing, find_last_mode
from ollm.runtime.resume.workspace_record import read_saved_context
from ollm.runtime.rewind import RewindFlow, RewindOutcome, Step
from ollm.services.modes import make_mode_change
from ollm.services.snapshots import read_context
from ollm.services.token_counting import TokenCounter
from ollm.store.workspace_db import WorkspaceDatabase
from ollm.store.workspace_place import find_database
from ollm.tools.framework.tool_selection import select_tools

if TYPE_CHECKING:
    from ollm.domain.events import Event
    from ollm.domain.session import ContextSnapshot, Session
    from ollm.runtime.model.model import Model
    from ollm.services.file_checkpoints.restore import RestoreKind


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

    async def take_snapshot(self, session_id: str) -> ContextSnapshot | None:
        """Take a snapshot of the archived context. Returns None if refused; `events` has the reason."""
        session = self.process.session_files.read(session_id).session
        return await self.snapshots.create_snapshot(self.build_prompt(session).capture_state(), "manual")

    async def restore_snapshot(self, snapshot_id: str) -> str:
        """Make a session resume from a snapshot next time, and return its id. Raises BusyError if it is open."""
        session_id = self.snapshot_files.find_session(snapshot_id)
        recording = self.process.create_recording_service(self.events.append)
        session = (await recording.open_session(session_id)).session
        try:
            now = self.build_prompt(session)
            context = await self.snapshots.restore_snapshot(snapshot_id, now.capture_state())
            changes = add_step(session, {"step": "restore", "snapshotId": snapshot_id}, self.process.clock)
            if context.mode != now.mode:
                mode = make_mode_change(now.mode, context.mode, "manual", clock=self.process.clock)
                changes["modeHistory"] = [*session.metadata.mode_history, mode]
            await recording.update_metadata(session_id, changes)
        finally:
            await recording.close_session(session_id)
        return session_id

    async def rewind(
        self,
        session_id: str,
        act: Callable[[RewindFlow], Awaitable[RewindOutcome]],
        *,
        kind: RestoreKind = "rewind",
        dry_run: bool = False,
    ) -> RewindOutcome:
        """Let `act` rewind a closed session or take that back. Completes an interrupted restore first, except for a
        preview (`dry_run`), which writes nothing. Raises BusyError if the session is open somewhere."""
        notes: list[str] = []
        scope = WorkspaceScope(self.process, self.workspace)
        recording = self.process.create_recording_service(self.events.append)

        async def record(step: Step) -> None:
            if step["step"] == "rewind":
                made = await self.snapshots.create_snapshot(self.build_prompt(session).capture_state(), "rewind")
                step["snapshotId"] = made.id if made else None
            await recording.update_metadata(session_id, add_step(session, step, self.process.clock))

        try:
            found = None if dry_run else await recover_restore(scope, notes.append)
            if dry_run:
                session = self.process.session_files.read(session_id).session
            else:
                session = (await recording.open_session(session_id)).session
            flow = RewindFlow(session, Lazy(scope.create_checkpoints), record)
            if found and found.journal.session_id == session_id and found.journal.kind == kind == "redo":
                done = flow.make_outcome(found.journal.message_id, found.journal.scope, (), found.result)
            else:
                done = await act(flow)
        except OllmError as error:
            error.message = "\n".join([*notes, error.message])
            raise
        finally:
            if not dry_run:
                await recording.close_session(session_id)
            scope.close()
        return replace(done, text="\n\n".join(filter(None, [*notes, done.text])))

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

    def build_next_prompt(self, session: Session | None, chosen: Model | None = None) -> Prompt:
        """Build the prompt as the next message finds it: without the thinking that has no room."""
        prompt = self.build_prompt(session, chosen)
        shed_old_thinking(prompt, self.process.settings, self.events.append)
        return prompt

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
        options = ConversationOptions(workspace=self.workspace)
        scope = ConversationScope(WorkspaceScope(self.process, self.workspace), options, AsyncExitStack())
        scope.add_entries(model.window)
        prompt = Prompt(model, settings, counter, scope.storage.entries)
        prompt.meter.set_shown_thinking(kept.shown_thinking if kept else None)
        if session:
            fill_prompt_for_viewing(prompt, session, kept, lambda name: read_context(self.snapshot_files.load(name)))
        if forms := (kept.forms if kept else facts):
            prompt.set_forms(forms)
        if not (forms and forms.chats_only):
            prompt.set_tools(
                select_tools(
                    prompt.mode,
                    scope.toolbox.registry.list(),
                    model.window,
                    folded=prompt.get_active_context().folded,
                    instruction_tokens=count_instruction_tokens(model.window, prompt.mode),
                )
            )
        return prompt

    def _read_saved_context(self, session_id: str) -> bytes | None:
        """Load the context saved after the last turn. Never creates a database."""
        place = find_database(WorkspaceScope(self.process, self.workspace).main, self.process.home)
        if place is None:
            return None
        with closing(WorkspaceDatabase(place)) as database, suppress(StorageError):
            return database.load_context(session_id)
        return None
