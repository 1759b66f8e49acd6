"""The parts of one conversation that need no model yet, each built when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from ollm.app.workspace import WorkspaceScope
from ollm.system.process_tree import make_undumpable

if TYPE_CHECKING:
    from ollm.domain.context import ModeName
    from ollm.runtime.conversation_options import ConversationOptions
    from ollm.runtime.custom_commands import CustomCommands
    from ollm.runtime.event_stream import EventStream
    from ollm.runtime.plan import Plan
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.runtime.session import OpenSession
    from ollm.services.context_manager import ContextManager
    from ollm.services.goals import GoalKeeper
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.snapshots import SnapshotManager
    from ollm.store.notes import NoteStore
    from ollm.store.snapshot_files import SnapshotFiles


class Storage:
    """The session and what is kept with it. What must be closed is pushed onto `stack` when it is built."""

    def __init__(self, scope: WorkspaceScope, opening: ConversationOptions, stack: AsyncExitStack) -> None:
        self.scope = scope
        self.process = scope.process
        self.opening = opening
        self.stack = stack
        self.notices: list[str] = []
        self.resumed_mode: ModeName | None = None
        self.asked_to_close: Callable[[], bool] = lambda: False
        self.attached: Callable[[], bool] = lambda: True
        make_undumpable()

    @cached_property
    def stream(self) -> EventStream:
        from ollm.runtime.event_stream import EventStream

        return EventStream(self.process.clock)

    @property
    def mode(self) -> ModeName:
        """The mode a conversation begins in."""
        return self.opening.mode or self.resumed_mode or self.process.settings.modes.default

    @cached_property
    def session(self) -> OpenSession:
        from ollm.runtime.session import OpenSession

        origin = "one-shot" if self.opening.one_shot else None
        recording = self.process.create_recording_service(self.stream.emit)
        return OpenSession(recording, str(self.opening.workspace), origin, self.process.clock)

    @cached_property
    def snapshots(self) -> SnapshotManager:
        from ollm.services.snapshots import SnapshotManager

        settings = self.process.settings.snapshots
        return SnapshotManager(self.snapshot_files, settings, emit=self.stream.emit, clock=self.process.clock)

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        from ollm.store.snapshot_files import SnapshotFiles

        return SnapshotFiles(self.process.home.snapshots)

    @property
    def notes(self) -> NoteStore:
        return self.scope.notes

    @property
    def workspace_context(self) -> WorkspaceContext:
        return self.scope.context

    @cached_property
    def plan(self) -> Plan:
        from ollm.runtime.plan import Plan

        return Plan(self.scope.notes.list_todos)

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

        return LoopDetectionService(self.process.settings.loop_detection, self.stream.emit)

    @cached_property
    def custom_commands(self) -> CustomCommands:
        from ollm.runtime.custom_commands import CustomCommands

        ours = (self.process.home.root / "commands",)
        theirs = (self.opening.workspace / ".ollm" / "commands",) if self.process.trusted else ()
        return CustomCommands((*theirs, *ours))
