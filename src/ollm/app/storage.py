"""What one conversation keeps: its session, snapshots, goals and context entries, each opened when first asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.app.workspace import WorkspaceScope

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope
    from ollm.config.paths import Home
    from ollm.domain.context import ModeName
    from ollm.domain.session import Session
    from ollm.domain.tools import Todo
    from ollm.runtime.conversation_options import ConversationOptions
    from ollm.runtime.event_stream import EventStream
    from ollm.runtime.plan import Plan
    from ollm.runtime.resume.session_archive import SessionArchive
    from ollm.runtime.session import OpenSession
    from ollm.services.context_manager import ContextManager
    from ollm.services.goals import GoalKeeper
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.snapshots import SnapshotManager
    from ollm.services.token_counting import TokenCounter
    from ollm.store.notes import NoteStore
    from ollm.store.session_files import MessagePage
    from ollm.store.snapshot_files import SnapshotFiles


class Storage:
    """The session and what is kept with it. `notices` collects what the person is told when the conversation opens."""

    def __init__(self, scope: WorkspaceScope, options: ConversationOptions) -> None:
        self.scope = scope
        self.process = scope.process
        self.options = options
        self.notices: list[str] = []
        scope.report = self.report_problem
        self.resumed_mode: ModeName | None = None
        self.has_session = False  # a tool that is run by hand belongs to none

    @cached_property
    def stream(self) -> EventStream:
        from ollm.runtime.event_stream import EventStream

        return EventStream(self.process.clock, redact=self.process.redact)

    @property
    def mode(self) -> ModeName:
        """The mode a conversation begins in."""
        return self.options.mode or self.resumed_mode or self.process.settings.modes.default

    @cached_property
    def session(self) -> OpenSession:
        from ollm.runtime.session import OpenSession

        origin = "task" if self.options.parent else "one-shot" if self.options.one_shot else None
        recording = self.process.create_recording_service(self.stream.emit, self.counter.count_text)
        workspace = str(self.options.workspace)
        return OpenSession(recording, workspace, origin, self.process.clock, self.options.parent)

    @cached_property
    def counter(self) -> TokenCounter:
        """Counts tokens for the archive and the prompt alike; it is told about the model when that is known."""
        from ollm.services.token_counting import TokenCounter

        return TokenCounter()

    @cached_property
    def snapshots(self) -> SnapshotManager:
        from ollm.services.snapshots import SnapshotManager

        settings = self.process.settings.snapshots
        return SnapshotManager(self.snapshot_files, settings, emit=self.stream.emit, clock=self.process.clock)

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        from ollm.store.snapshot_files import SnapshotFiles

        return SnapshotFiles(self.process.home.snapshots)

    def create_plan(self) -> Plan:
        from ollm.runtime.plan import Plan

        def list_todos() -> Sequence[Todo]:
            return self.notes.list_todos()

        return Plan(list_todos)

    @cached_property
    def notes(self) -> NoteStore:
        """The workspace's memory, with the todos of this session; without a session, those of nobody."""
        notes = self.scope.notes
        if self.has_session:
            from ollm.runtime.plan import TodoOwner

            notes.get_todo_owner = TodoOwner(lambda: self.session.id, notes.reassign_todos).get
        return notes

    def report_problem(self, text: str) -> None:
        """Tell the person: when the conversation opens, or at once when it is open."""
        from ollm.domain.events import Notice

        self.notices.append(text)
        self.stream.emit(Notice(level="warning", text=text))

    @cached_property
    def goals(self) -> GoalKeeper:
        from ollm.services.goals import GoalKeeper

        return GoalKeeper(clock=self.process.clock)

    @cached_property
    def entries(self) -> ContextManager:
        from ollm.domain.events import Notice
        from ollm.services.context_manager import ContextManager

        return ContextManager(self.process.clock, lambda text: self.stream.emit(Notice(level="warning", text=text)))

    def create_loop_detection(self) -> LoopDetectionService:
        from ollm.services.loop_detection import LoopDetectionService

        settings = self.process.settings.loop_detection
        if self.options.max_steps is not None:
            import msgspec

            settings = msgspec.structs.replace(settings, max_turns=self.options.max_steps, enabled=True)
        return LoopDetectionService(settings, self.stream.emit)

    @property
    def command_directories(self) -> tuple[Path, ...]:
        return find_command_directories(self.process, self.options.workspace)

    @property
    def skill_directories(self) -> tuple[Path, ...]:
        """Where skills are; those of the workspace come first, if it is trusted."""
        theirs = (self.options.workspace / ".ollm" / "skills",) if self.process.trusted else ()
        return (*theirs, self.process.home.skills)

    @property
    def agent_directories(self) -> tuple[Path, ...]:
        return self.scope.agent_directories

    @cached_property
    def archive(self) -> SessionArchive:
        from ollm.runtime.resume.session_archive import SessionArchive

        return SessionArchive(self.load_archive)

    async def load_archive(self, page: MessagePage | None) -> Session | None:
        """The session as it is, or a page of it, for `recall`; None before there is one."""
        return self.session.load(page) if self.session.id else None

    def keep_mode(self, session: Session) -> None:
        """Go on in the mode that a resumed session was in."""
        from ollm.runtime.resume.rebuild import find_last_mode

        self.resumed_mode = find_last_mode(session)


def has_interrupted_restore(home: Home) -> bool:
    """Whether any workspace has one. Looks at one name a workspace: it is asked at every start."""
    try:
        with os.scandir(home.checkpoints) as places:
            return any(os.path.exists(f"{place.path}/restore.journal") for place in places)  # noqa: PTH110
    except OSError:
        return False


def find_command_directories(process: ProcessScope, workspace: Path) -> tuple[Path, ...]:
    """Where the person's own slash commands are; those of the workspace come first, if it is trusted."""
    theirs = (workspace / ".ollm" / "commands",) if process.trusted else ()
    return (*theirs, process.home.root / "commands")
