"""The parts of one conversation that need no model yet, each built when it is first asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.app.workspace import WorkspaceScope
from ollm.system.process_tree import make_undumpable

if TYPE_CHECKING:
    from ollm.domain.context import Approval, CompressionRecord, ModeName
    from ollm.domain.session import Session
    from ollm.domain.tools import Todo
    from ollm.extensions.hooks import Hooks
    from ollm.extensions.loader import Extensions
    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.runtime.archive import SessionArchive
    from ollm.runtime.confirmation import Asker
    from ollm.runtime.custom_commands import CustomCommands
    from ollm.runtime.dispatch import Dispatch
    from ollm.runtime.event_stream import EventStream
    from ollm.runtime.model import Model
    from ollm.runtime.one_call import Desk
    from ollm.runtime.opening import Opening
    from ollm.runtime.plan import Plan
    from ollm.runtime.prompt import Prompt
    from ollm.runtime.session import OpenSession
    from ollm.runtime.workspace import WorkspaceContext
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.context_manager import ContextManager
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.goals import GoalKeeper
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.snapshots import SnapshotManager
    from ollm.store.notes import NoteStore
    from ollm.store.session_files import Page
    from ollm.store.snapshot_files import SnapshotFiles
    from ollm.system.processes import ProcessHost
    from ollm.tools.registry import ToolRegistry
    from ollm.tools.web_fetch import PageCache
    from ollm.tools.web_search import Search


class Pieces:
    """What must be closed is pushed onto `stack` when it is built. From here on the process is an agent, and what it
    was given is nobody else's to read (safety 3)."""

    def __init__(self, scope: WorkspaceScope, opening: Opening, stack: AsyncExitStack) -> None:
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

    @cached_property
    def bus(self) -> MessageBus:
        from ollm.policy.message_bus import MessageBus

        bus = MessageBus()
        bus.subscribe(self.stream.emit)
        self.stack.callback(bus.cancel_all)
        return bus

    @cached_property
    def policy(self) -> PolicyEngine:
        engine = self.scope.policy(self.opening.grants)
        engine.approval = self.approval_at_first
        return engine

    @property
    def approval(self) -> Approval:
        """What runs without a question now."""
        return self.policy.approval if "policy" in self.__dict__ else self.approval_at_first

    @property
    def approval_at_first(self) -> Approval:
        """What is configured, unless the mode imposes its own."""
        from ollm.services.modes import MODES

        return MODES[self.mode].approval or self.process.settings.policy.approval

    @property
    def mode(self) -> ModeName:
        """The mode a conversation begins in."""
        return self.opening.mode or self.resumed_mode or self.process.settings.modes.default

    @cached_property
    def session(self) -> OpenSession:
        from ollm.runtime.session import OpenSession

        origin = "one-shot" if self.opening.one_shot else None
        recording = self.process.recording(self.stream.emit)
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

    @cached_property
    def edits(self) -> EditLedger:
        from ollm.services.edit_ledger import EditLedger

        def folder() -> Path | None:
            return self.process.home.undo / self.session.id if self.session.id else None

        return EditLedger(folder)

    @property
    def notes(self) -> NoteStore:
        return self.scope.notes

    @property
    def workspace_context(self) -> WorkspaceContext:
        return self.scope.context

    @cached_property
    def plan(self) -> Plan:
        from ollm.runtime.plan import Plan

        return Plan(self.scope.notes.todos)

    @cached_property
    def goals(self) -> GoalKeeper:
        from ollm.services.goals import GoalKeeper

        return GoalKeeper(clock=self.process.clock)

    @cached_property
    def registry(self) -> ToolRegistry:
        """Every tool of ours with what it needs, and those that are brought from outside."""
        from ollm.tools.shelf import stocked

        registry = stocked(self, self.process.home.cache / "tools.json")
        for spec in self.mcp.specs() if self.mcp else ():
            registry.register(spec)
        for spec in self.extensions.tools if self.extensions else ():
            if registry.get(spec.name) is None:
                registry.register(spec)
            else:
                self.notices.append(f"The tool {spec.name} of an extension is not used: there is one of that name.")
        return registry

    @property
    def discovery(self) -> FileDiscoveryService:
        return self.scope.discovery

    @property
    def global_notes(self) -> NoteStore:
        return self.process.notes

    def todos_changed(self, todos: tuple[Todo, ...]) -> None:
        from ollm.domain.events import TodosChanged

        self.stream.emit(TodosChanged(todos=todos))

    @cached_property
    def archive(self) -> SessionArchive:
        from ollm.runtime.archive import SessionArchive

        return SessionArchive(self.archived)

    @cached_property
    def search(self) -> Search:
        from ollm.tools.web_search import Search

        return Search(
            key=self.process.environment.get(self.process.settings.tools.web_search.api_key_env or ""),
            others=self.extensions.search_backends if self.extensions else {},
        )

    @cached_property
    def extensions(self) -> Extensions | None:
        """What the enabled extensions bring; those that failed are told."""
        found = self.process.extensions
        self.notices.extend(found.problems if found else ())
        return found

    @cached_property
    def mcp(self) -> McpServers | None:
        """The configured MCP servers, none of them started yet; None when there are none."""
        if not self.process.settings.mcp_servers:
            return None
        from ollm.app.foreign import mcp_servers
        from ollm.domain.events import Notice

        def tell(text: str) -> None:
            self.stream.emit(Notice(level="warning", text=text))

        servers, problems = mcp_servers(self.process, self.scope.path, self.host, tell)
        self.notices.extend(problems)
        self.stack.push_async_callback(servers.close)
        return servers

    @cached_property
    def pages(self) -> PageCache:
        from ollm.tools.web_fetch import PageCache

        return PageCache()

    @cached_property
    def jobs(self) -> BackgroundJobs:
        """The commands of this conversation; all of them, and what they leave behind, end with it."""
        from ollm.services.background_jobs import BackgroundJobs

        jobs = BackgroundJobs(self.host, self.process.settings.tools.shell.max_background)
        self.stack.push_async_callback(jobs.close)
        return jobs

    @cached_property
    def host(self) -> ProcessHost:
        """Starts everything this conversation runs, and ends it."""
        from ollm.system.processes import ProcessHost

        host = ProcessHost()
        self.stack.push_async_callback(host.close)
        return host

    @cached_property
    def hooks(self) -> Hooks | None:
        """The configured hooks; None when there are none, and then nothing of them is imported."""
        if not self.process.settings.hooks:
            return None
        from ollm.extensions.hook_process import HookRunner
        from ollm.extensions.hook_settings import read_hooks
        from ollm.extensions.hooks import HookContext, Hooks

        found, problems = read_hooks(self.process.settings.hooks)
        self.notices.extend(problems)
        runner = HookRunner(self.host, self.scope.path, self.process.tool_environment)
        context = HookContext(lambda: self.session.id, str(self.scope.path), self.stream.emit, self.add_hook_context)
        return Hooks(found, runner, context)

    def add_hook_context(self, entry: Mapping[str, Any]) -> None:
        """What a hook wants the model to be told (S5.6); a wrong entry is skipped with a warning."""
        self.entries.add_context(
            str(entry.get("key", "")),
            str(entry.get("content", "")),
            priority=entry.get("priority", 50),
            source="hook",
            ttl_seconds=entry.get("ttl"),
            volatile=entry.get("volatile") is True,
        )

    @cached_property
    def entries(self) -> ContextManager:
        from ollm.domain.events import Notice
        from ollm.services.context_manager import ContextManager

        return ContextManager(self.process.clock, lambda text: self.stream.emit(Notice(level="warning", text=text)))

    async def archived(self, page: Page | None) -> Session | None:
        """The session as it stands, or a page of it, for `recall`."""
        return self.session.load(page) if self.session.id else None

    def prompt(self, model: Model) -> Prompt:
        from ollm.runtime.prompt import Prompt, PromptModel
        from ollm.runtime.room import Room
        from ollm.services.token_counting import TokenCounter

        settings, clock = self.process.settings, self.process.clock
        counter = TokenCounter(model.facts.token_factor, model.facts.token_samples)
        room = Room(
            settings,
            counter,
            self.snapshots,
            keep=self.compressed,
            before=self.before_compression,
            clock=clock,
        )
        whom = PromptModel(session_id="", model=model.name, window=model.window, mode=self.mode)
        self.instruct()
        return Prompt(whom, settings, counter, self.entries, room, goals=self.goals)

    def instruct(self) -> None:
        """Tell the model what the project's own files ask of it, if they are trusted."""
        if not self.process.trusted:
            return
        from ollm.runtime.project_instructions import project_instructions

        found, warnings = project_instructions(self.scope.boundary, Path.cwd())
        for entry in found:
            self.entries.add_entry(entry)
        self.notices.extend(warnings)

    async def survey(self, window: int) -> None:
        """Tell the model which files there are, where that is wanted; the same words for the whole conversation."""
        tokens = min(self.process.settings.file_discovery.project_map, window // 16)
        if tokens and self.process.trusted:
            from ollm.runtime.project_survey import project_survey

            entry = await project_survey(self.discovery, self.scope.path, tokens)
            if entry is not None:
                self.entries.add_entry(entry)

    async def before_compression(self) -> None:
        if self.hooks:
            await self.hooks.happened("before-compression", {})

    async def compressed(self, record: CompressionRecord) -> None:
        await self.session.compressed(record)
        if self.hooks:
            data = {"before": record.original_token_count, "after": record.compressed_token_count}
            await self.hooks.happened("after-compression", data)

    def loops(self) -> LoopDetectionService:
        from ollm.services.loop_detection import LoopDetectionService

        return LoopDetectionService(self.process.settings.loop_detection, self.stream.emit)

    @cached_property
    def custom_commands(self) -> CustomCommands:
        from ollm.runtime.custom_commands import CustomCommands

        ours = (self.process.home.root / "commands",)
        theirs = (self.opening.workspace / ".ollm" / "commands",) if self.process.trusted else ()
        return CustomCommands((*theirs, *ours))

    def dispatch(self, sees: Callable[[], Awaitable[bool]]) -> Dispatch:
        from ollm.runtime.dispatch import Dispatch

        return Dispatch(self.desk(sees))

    def desk(self, sees: Callable[[], Awaitable[bool]] | None = None) -> Desk:
        """What running calls takes; `sees` tells whether the model of the moment can see pictures."""
        import msgspec

        from ollm.extensions.base import NoHooks
        from ollm.runtime.one_call import Desk
        from ollm.tools.base import ToolContext

        settings = self.process.settings
        context = ToolContext(
            boundary=self.scope.boundary, environment=self.process.tool_environment, settings=settings.tools
        )
        if sees is not None:
            context = msgspec.structs.replace(context, sees=sees)
        return Desk(
            registry=self.registry,
            policy=self.policy,
            context=context,
            emit=self.stream.emit,
            asker=self.asker(),
            hooks=self.hooks or NoHooks(),
            record=self.session.record_call,
            remember=self.policy.grants.add,
            clock=self.process.clock,
        )

    def asker(self) -> Asker:
        from ollm.runtime.confirmation import AskOverBus, Unattended

        if not self.opening.interactive:
            return Unattended(yes=self.opening.yes)
        timeout = self.process.settings.policy.confirmation_timeout or None
        return AskOverBus(self.bus, timeout, yes=self.opening.yes, attached=self.attached)
