"""Everything the tool calls of one conversation need: tools, permissions, processes, hooks, editor context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.app.process import ProcessScope
from ollm.app.storage import Storage
from ollm.app.workspace import WorkspaceScope, build_rule_set
from ollm.config.settings import Check
from ollm.domain.errors import NotFoundError, OllmError, ToolFailure, UsageError
from ollm.domain.events import Notice, TodosChanged
from ollm.domain.lazy import Lazy
from ollm.runtime.base import ConversationOptions
from ollm.runtime.observers.housekeeping import FileCheckpointObserver
from ollm.services.modes import MODES
from ollm.system.process_tree import make_undumpable
from ollm.tools.catalogue import build_registry
from ollm.tools.framework.base import ToolContext

if TYPE_CHECKING:
    from ollm.domain.events import Event
    from ollm.domain.messages import JsonObject, ToolCall
    from ollm.domain.session import TaskReport, TaskRequest
    from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Todo, ToolCallRecord
    from ollm.extensions.hooks import Hooks
    from ollm.extensions.loader import Extensions
    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.policy.rules import RuleSet
    from ollm.runtime.calls.dispatch import Dispatch
    from ollm.runtime.calls.permission import AnswerLog, Asker, BeforeQuestion
    from ollm.runtime.checks import Checks
    from ollm.runtime.model.role_models import RoleModels
    from ollm.runtime.parts import ConversationState, TaskStarter
    from ollm.runtime.small_models.project_files import ProjectFiles
    from ollm.services.background_jobs import BackgroundJobs
    from ollm.services.code_map.service import CodeMapService
    from ollm.services.diagnostics.servers import ServerFinder
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_discovery.service import FileDiscoveryService
    from ollm.services.message_search.session_archive import SessionArchive
    from ollm.store.notes import NoteStore
    from ollm.system.processes import ProcessHost
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.framework.base import EditorFiles, ToolRegistry, ToolSpec
    from ollm.tools.web_search import WebSearchNeeds


CHANGED_RULES = "The permission rules were changed. Stricter ones hold now; `/config reload` applies the others too."
OFFERED_WINDOW_TOKENS, OFFERED_PRIORITY = 8_000, 6
ONE_SHOT_WAIT_SECONDS = 3600.0  # No later turn could use a late server; each has its own startTimeout.


def find_session_file(storage: Storage) -> str:
    """Return the path of the session file, or "" before it is recorded."""
    session_id = storage.session.id
    return str(storage.process.sessions_directory / f"{session_id}.json") if session_id else ""


class ToolNeeds:
    """The `ToolServices` of one conversation. Parts that need closing are pushed onto `stack` when built."""

    def __init__(self, storage: Storage, stack: AsyncExitStack) -> None:
        self.storage = storage
        self.scope = storage.scope
        self.process = storage.process
        self.options = storage.options
        self.stack = stack
        self.get_result_tokens: Callable[[], int | None] = lambda: None  # A conversation knows the room in its window.
        self.tasks: Lazy[TaskStarter] | None = None
        self.goals = storage.goals
        self.count_tokens = storage.counter.count_text  # As the model of this conversation counts.
        self.diagnostics = Lazy(self._create_diagnostics)

    def _warn(self, text: str) -> None:
        self.storage.stream.emit(Notice(level="warning", text=text))

    @property
    def discovery(self) -> FileDiscoveryService:
        return self.scope.discovery

    @cached_property
    def code_map(self) -> CodeMapService:
        from ollm.services.code_map.service import CodeMapService

        return CodeMapService(self.process.settings.code_map, self.process.home.cache / "code")

    async def run_task(self, request: TaskRequest, emit: Callable[[str], None]) -> TaskReport:
        """Run a task in its own conversation. Raises ToolFailure without a parent conversation."""
        if self.tasks is None:
            raise ToolFailure("NotFound", "A task belongs to a conversation, and there is none here. Use the chat.")
        return await self.tasks.get().run(request, emit)

    @property
    def notes(self) -> NoteStore:
        return self.storage.notes

    @property
    def global_notes(self) -> NoteStore:
        return self.process.notes

    @property
    def archive(self) -> SessionArchive:
        return self.storage.archive

    def todos_changed(self, todos: tuple[Todo, ...]) -> None:
        self.storage.stream.emit(TodosChanged(todos=todos))

    @cached_property
    def search(self) -> WebSearchNeeds:
        from ollm.tools.web_search import WebSearchNeeds

        return WebSearchNeeds(
            key=self.process.environment.get(self.process.settings.tools.web_search.api_key_env or ""),
            others=self.extensions.search_backends if self.extensions else {},
        )

    @cached_property
    def extensions(self) -> Extensions | None:
        """Enabled extensions. Failed ones are reported."""
        found = self.process.extensions
        self.storage.notices.extend(found.problems if found else ())
        return found

    @cached_property
    def jobs(self) -> BackgroundJobs:
        """Background commands. All of them, and their leftover processes, end with the conversation."""
        from ollm.services.background_jobs import BackgroundJobs

        jobs = BackgroundJobs(self.host, self.process.settings.tools.shell.max_background)
        self.stack.push_async_callback(jobs.close)
        return jobs

    @cached_property
    def sandbox(self) -> Lazy[Sandbox]:
        """Sandbox of this conversation's commands, hooks and servers, created for the first that needs one."""
        sandbox = Lazy(self.scope.create_sandbox)

        def close() -> None:
            if sandbox.built:
                sandbox.built.close()

        self.stack.callback(close)
        return sandbox

    def add_root(self, folder: Path) -> None:
        """Let tools, and commands that start from now on, use another directory.

        Raises UsageError if it is protected."""
        if reason := self.scope.boundary.explain_refused_root(folder):
            raise UsageError(f"{folder} cannot be added: {reason}.", action="Choose another directory.")
        self.scope.boundary.add_root(folder)
        self.scope.added_roots.append(folder)
        if self.sandbox.built:
            self.sandbox.built.add_writable(folder)

    @cached_property
    def host(self) -> ProcessHost:
        """Host that starts and ends every process of this conversation."""
        from ollm.system.processes import ProcessHost

        _ = self.sandbox  # The sandbox closes after the host, when no process is left.
        host = ProcessHost()
        self.stack.push_async_callback(host.close)
        return host

    @cached_property
    def server_finder(self) -> ServerFinder:
        return self.scope.create_server_finder()

    def find_diagnostics(self, path: Path) -> DiagnosticsService | None:
        """Return the language servers if one is installed for this file; none is started by that."""
        if not self.process.settings.tools.diagnostics.enabled or self.server_finder.find_for_file(path) is None:
            return None
        return self.diagnostics.get()

    @property
    def untrusted_servers(self) -> str:
        """Name the language servers that do not start because the workspace is not trusted."""
        names = ", ".join(one.name for one in self.server_finder.languages if one.runs_code)
        return (
            "" if self.process.trusted else f" Without trust (`/trust`) none starts for {names}, nor from the project."
        )

    def take_late_errors(self) -> str:
        return self.diagnostics.built.take_late_errors() if self.diagnostics.built else ""

    def _create_diagnostics(self) -> DiagnosticsService:
        from ollm.domain.files import DiscoveryOptions
        from ollm.services.diagnostics.service import DiagnosticsService, ServerHost

        boundary, settings = self.scope.boundary, self.process.settings.tools.diagnostics

        async def list_files(globs: tuple[str, ...]) -> list[Path]:
            options = DiscoveryOptions(root=str(boundary.workspace), include_patterns=globs, hidden=False)
            return [Path(entry.path) for entry in await self.discovery.discover_all(options)]

        host = ServerHost(
            boundary, self.host, self.sandbox.get(), self.process.tool_environment, list_files, self._warn
        )
        diagnostics = DiagnosticsService(settings, self.server_finder, host)
        self.stack.push_async_callback(diagnostics.close)
        return diagnostics

    @cached_property
    def edits(self) -> EditLedger:
        from ollm.services.edit_ledger import EditLedger

        def find_folder() -> Path | None:
            return self.process.home.undo / self.storage.session.id if self.storage.session.id else None

        return EditLedger(find_folder)


class Toolbox(ToolNeeds):
    """The tools of one conversation, and the parts that run its calls. Each is built when a call first needs it, since
    most short conversations make no calls."""

    def __init__(self, storage: Storage, stack: AsyncExitStack) -> None:
        make_undumpable()
        super().__init__(storage, stack)
        self.editor: EditorFiles | None = None
        self.roles: Lazy[RoleModels] | None = None
        self.checkpoints = Lazy(self.scope.create_checkpoints)
        self._newer_rules: RuleSet | None = None

    @cached_property
    def answers(self) -> AnswerLog:
        from ollm.runtime.calls.permission import AnswerLog

        return AnswerLog()

    @cached_property
    def bus(self) -> MessageBus:
        from ollm.policy.message_bus import MessageBus

        bus = MessageBus()
        bus.subscribe(self.answers.handle_event)
        bus.subscribe(self.storage.stream.emit)
        self.stack.callback(bus.cancel_all)
        return bus

    @cached_property
    def policy(self) -> PolicyEngine:
        engine = self.scope.create_policy(self.options.grants, self.sandbox)
        engine.approval = MODES[self.storage.mode].approval or self.process.settings.policy.approval
        engine.find_newer_rules = self.find_newer_rules
        return engine

    def find_newer_rules(self) -> RuleSet | None:
        """Return the rules that were written since the conversation began, if they differ, and say so once."""
        if (loaded := self.process.read_changed_settings()) is None:
            return self._newer_rules
        fault = next((str(problem) for problem in loaded.problems if problem.fatal), "")
        if not fault:
            rules = build_rule_set(loaded)
            self._newer_rules = None if rules.is_same(self.policy.rules) else rules
        if fault or self._newer_rules:
            self.storage.stream.emit(Notice(level="warning", text=fault or CHANGED_RULES))
        return self._newer_rules

    @cached_property
    def registry(self) -> ToolRegistry:
        """Built-in tools with their services, and the tools of MCP servers and extensions."""
        registry = build_registry(self)
        if any(place.is_dir() for place in self.scope.agent_directories):
            offer_agents(registry, self.scope.agent_directories)
        for spec in self.mcp.list_specs() if self.mcp else ():
            registry.register(spec)
        for spec in self.extensions.tools if self.extensions else ():
            if registry.get(spec.name) is None:
                registry.register(spec)
            else:
                self.storage.notices.append(f"Skipped the extension's tool {spec.name}: that name is already taken.")
        return registry

    @cached_property
    def mcp(self) -> McpServers | None:
        """Configured MCP servers, none of them started yet, or None without any."""
        brought = self.options.mcp_servers
        if not brought and not any(self.process.mcp_entries):
            return None
        from ollm.app.mcp_setup import create_mcp_servers
        from ollm.extensions.mcp.gate import ServerGate

        servers, problems = create_mcp_servers(
            self.process,
            self.scope.path,
            lambda: self.host,
            self.sandbox.get,
            self._warn,
            ONE_SHOT_WAIT_SECONDS if self.options.one_shot else None,
            self.ask_person if self.options.interactive else None,
            ServerGate(brought, self.ask_person, self.policy.grants) if brought else None,
        )
        self.storage.notices.extend(problems)
        self.stack.push_async_callback(servers.close)
        return servers

    async def ask_person(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        """Ask a question that is not about permission, so that no rule, grant or flag answers it."""
        return await self.create_asker().ask(details)

    @cached_property
    def hooks(self) -> Hooks | None:
        """Configured hooks, or None without any, in which case no hook code is imported."""
        brought = self.extensions.hooks if self.extensions else {}
        if not self.process.settings.hooks and not brought:
            return None
        from ollm.extensions.hook_process import HookRunner
        from ollm.extensions.hook_settings import read_hooks
        from ollm.extensions.hooks import HookContext, Hooks
        from ollm.runtime.observers.extensions import add_entry

        storage = self.storage
        found, problems = read_hooks(self.process.settings.hooks, self.process.own_settings.hooks)
        theirs, faults = read_hooks(brought, {})  # None of them may leave the sandbox.
        storage.notices.extend((*problems, *faults))
        context = HookContext(
            lambda: storage.session.id,
            str(self.scope.path),
            storage.stream.emit,
            lambda entry: add_entry(storage.entries, str(entry.get("key", "")), entry, "hook"),
            lambda: find_session_file(storage),
        )
        process, where, box = self.process, self.scope.path, self.sandbox
        runner = Lazy(lambda: HookRunner(self.host, where, process.tool_environment, box.get()))
        return Hooks((*found, *theirs), runner, context)

    @cached_property
    def checks(self) -> Checks | None:
        """Configured checks, or None without any, in which case no code of theirs is imported."""
        configured, given = self.process.settings.checks, self.options.check
        if not configured and not given:
            return None
        from ollm.runtime.checks import Checks

        ours = [Check(files=(), run=given[0], max_rounds=given[1])] if given else []
        return Checks(
            (*msgspec.convert(configured, tuple[Check, ...]), *ours),
            lambda: self.program_context,
            lambda: self.jobs,
            lambda: self.edits,
            lambda: self.checkpoint_observer,
            self.storage.stream.emit,
        )

    @cached_property
    def project_files(self) -> ProjectFiles:
        """Project files that the model may see without asking."""
        from ollm.runtime.small_models.project_files import ProjectFiles

        context = ToolContext(boundary=self.scope.boundary, settings=self.process.settings.tools)
        return ProjectFiles(context, self.policy, self.edits, self.discovery)

    def create_dispatch(self, state: ConversationState | None = None) -> Dispatch:
        """Create what runs calls; `state` has the current model. Without one nothing is recorded."""
        from ollm.runtime.calls.dispatch import CallServices, Dispatch, discard_record

        services = CallServices(
            registry=self.registry,
            policy=self.policy,
            context=msgspec.structs.replace(
                self.program_context,
                take_late_errors=self.take_late_errors,
                **({"sees": state.sees} if state else {}),
            ),
            emit=self.storage.stream.emit,
            asker=self.create_asker(self.checkpoint_observer.before_question),
            answers=self.answers,
            hooks=self.hooks,
            record=self.storage.session.record_tool_call if state else discard_record,
            remember=self.policy.grants.add,
            clock=self.process.clock,
            changes=self.checkpoint_observer,
        )
        return Dispatch(services)

    @cached_property
    def file_context(self) -> ToolContext:
        """File access, through the editor if there is one."""
        settings, find = self.process.settings.tools, self.find_diagnostics
        check = self.checks.check_edit if self.checks else None
        context = ToolContext(boundary=self.scope.boundary, settings=settings, find_diagnostics=find, check_edit=check)
        if self.editor is None:
            return context
        return msgspec.structs.replace(context, editor=self.editor, changed_in_editor=self._note_editor_change)

    @property
    def program_context(self) -> ToolContext:
        """File access, and what programs run in."""
        environment = Lazy(lambda: self.process.tool_environment)
        return msgspec.structs.replace(self.file_context, lazy_environment=environment, lazy_sandbox=self.sandbox)

    async def _note_editor_change(self, path: Path, before: bytes, after: bytes) -> None:
        if self.checkpoints.built is None:
            return
        try:
            await asyncio.to_thread(self.checkpoints.built.note_editor_change, path, before, after)
        except (OllmError, OSError):
            return  # The change is made; /rewind will name the file.

    @cached_property
    def checkpoint_observer(self) -> FileCheckpointObserver:

        enabled, storage = self.process.settings.checkpoints.enabled, self.storage
        return FileCheckpointObserver(self.checkpoints, storage.session, storage.stream.emit, enabled=enabled)

    def create_asker(self, before: BeforeQuestion | None = None) -> Asker:
        from ollm.runtime.calls.permission import UserAsker

        bus = self.bus if self.options.interactive else None
        timeout = self.process.settings.policy.confirmation_timeout or None
        return UserAsker(bus, timeout, yes=self.options.yes, before=before)


def offer_agents(registry: ToolRegistry, directories: Sequence[Path]) -> None:
    """Add the agents to the description of the tool `task`, and offer it in smaller windows too, since agents are
    defined to be used."""
    from ollm.services.agents import describe_agents

    agents, task = describe_agents(directories), registry.get("task")
    if not agents or task is None or task.small is None:
        return
    told = f" Agents: {agents}."
    small = msgspec.structs.replace(
        task.small, description=f"{task.small.description}{told}", parameters=("agent",), clear_name=False
    )
    offered = msgspec.structs.replace(
        task,
        description=f"{task.description}{told}",
        small=small,
        min_window=OFFERED_WINDOW_TOKENS,
        priority=dict.fromkeys(task.priority, OFFERED_PRIORITY),
    )
    registry.register(offered)


async def run_tool_call(options: ConversationOptions, call: ToolCall, emit: Callable[[Event], None]) -> ToolCallRecord:
    """Run one call under a conversation's policy and limits, without recording it."""
    process = ProcessScope(workspace=options.workspace, flags=options.flags)
    async with AsyncExitStack() as stack:
        scope = WorkspaceScope(process, options.workspace)
        stack.callback(scope.close)
        toolbox = Toolbox(Storage(scope, options), stack)
        toolbox.storage.stream.add_listener(emit)
        await discover_mcp_tool(toolbox, call.name)
        if call.name != "recall":
            toolbox.registry.unregister("recall")  # Nothing is recorded that it could bring back.
        dispatch = toolbox.create_dispatch()
        stack.push_async_callback(dispatch.close)
        (record,) = await dispatch.run([call], 0)
        return record


async def discover_mcp_tool(toolbox: Toolbox, name: str) -> None:
    """Query MCP servers if the named tool may be one of theirs."""
    if toolbox.mcp and "__" in name and toolbox.registry.get(name) is None and await toolbox.mcp.before_turn():
        for spec in toolbox.mcp.list_specs():
            toolbox.registry.register(spec)
    for state in toolbox.mcp.list_states() if toolbox.mcp else ():
        if state.failure and name.startswith(f"{state.server.name}__"):
            raise NotFoundError(f"Cannot run {name}. {state.failure}")


def create_tool_registry(workspace: Path, process: ProcessScope | None = None) -> ToolRegistry:
    """Create the tools of a conversation in this workspace."""
    scope = WorkspaceScope(process or ProcessScope(workspace=workspace), workspace)
    return Toolbox(Storage(scope, ConversationOptions(workspace=workspace)), AsyncExitStack()).registry


def serialize_tools(specs: Iterable[ToolSpec]) -> list[JsonObject]:
    """Serialize tools as JSON, with their risk and parameters."""
    return [
        {
            "name": spec.name,
            "description": spec.description,
            "risk": spec.risk,
            "readsOnly": spec.reads_only,
            "parameters": spec.parameters,
        }
        for spec in specs
    ]
