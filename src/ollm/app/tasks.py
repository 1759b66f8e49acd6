"""Runs tasks: a nested conversation with its parent's sandbox, questions and grants, and its agent's tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox
from ollm.app.worktrees import TaskCopies
from ollm.config.settings import LoopSettings
from ollm.domain.context import Usage
from ollm.domain.errors import ToolFailure
from ollm.domain.events import Notice, TextDelta, ToolStarted, TurnFinished
from ollm.domain.session import ParentCall, TaskReport, TaskRequest
from ollm.runtime.base import ConversationOptions
from ollm.runtime.model.server_queue import in_background
from ollm.runtime.observers.housekeeping import UnwatchedFiles
from ollm.services.agents import Agent, check_agent_tools, list_agents, load_agent
from ollm.services.chat_compression.folding import cut_text
from ollm.services.modes import MODES, READING_CATEGORIES
from ollm.services.task_limits import TaskLimit, TaskPlaces
from ollm.tools.catalogue import build_registry

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
    from ollm.policy.engine import PolicyEngine
    from ollm.runtime.calls.permission import Asker, BeforeQuestion
    from ollm.runtime.conversation import LocalConversation
    from ollm.runtime.model.model import Model
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.tools.framework.base import ToolRegistry

OpenTask = Callable[["TaskOrigin", ConversationOptions, AsyncExitStack], Awaitable["LocalConversation"]]

MAX_PARALLEL_TASKS = 4
WRITING_MODES = ("code", "debug")
WORDS_PER_TOKEN = 0.6
CLOSING_REQUEST = "Stop here. Call no more tools. Write your report now, from what you have seen so far."


class TaskRunner:
    """Runner of a conversation's tasks. `get_model` returns the model for tasks."""

    def __init__(self, toolbox: Toolbox, get_model: Callable[[], Awaitable[Model]], open_task: OpenTask) -> None:
        self._toolbox = toolbox
        self._get_model = get_model
        self._open_task = open_task
        self._places = TaskPlaces(self._count_places)
        self._copies = TaskCopies(toolbox)
        self._question = asyncio.Lock()
        self._used, self._cost = Usage(), 0.0

    def take_usage(self) -> tuple[Usage, float]:
        """Return the tokens used by tasks since the last call, and their cost."""
        used, self._used = (self._used, self._cost), Usage()
        self._cost = 0.0
        return used

    def list_agents(self) -> list[Agent]:
        """List the user-defined agents."""
        return list_agents(self._toolbox.scope.agent_directories, self._list_tool_names())

    async def run(self, request: TaskRequest, emit: Callable[[str], None]) -> TaskReport:
        """Run a task. Raises ToolFailure for an unknown agent, or if there is nothing to report."""
        agent = self._load_agent(request.agent) if request.agent else None
        with self._copies.join_line() if self._may_write(agent) else nullcontext() as before:
            async with self._places.take(request.side_by_side, emit):
                if before is None or self._places.count == 1:
                    return await self._run(request, agent, emit)
                return await self._copies.run(
                    request.title, before, lambda folder: self._run(request, agent, emit, folder)
                )

    async def _run(
        self, request: TaskRequest, agent: Agent | None, emit: Callable[[str], None], folder: Path | None = None
    ) -> TaskReport:
        async with AsyncExitStack() as stack:
            before = in_background.set(True)
            stack.callback(in_background.reset, before)
            model = await self._get_model()
            origin = TaskOrigin(
                toolbox=self._toolbox,
                model=model,
                agent=agent,
                request=request,
                question=self._question,
                limit=TaskLimit(self._toolbox.process.settings.tools.task.max_seconds),
                folder=folder,
            )
            facts = model.facts
            conversation = await self._open_task(origin, self._make_options(request, agent), stack)
            work = _TaskWork(conversation, emit, origin.limit)
            try:
                await work.run(self._build_prompt(request, agent, folder))
            finally:
                self._used, self._cost = self._used + conversation.usage, self._cost + conversation.cost
                if roles := self._toolbox.roles:
                    roles.get().record("tasks", conversation.parts.state.seconds, model, facts)
                session_id = conversation.session_id or ""
                await conversation.close()
        if work.failure and roles and roles.get().report_failure("tasks", model, work.failure):
            return await self._run(request, agent, emit, folder)  # Now the main model does it.
        return self._build_report(work, session_id)

    async def _count_places(self) -> int:
        wanted = self._toolbox.process.settings.tools.task.parallel
        return wanted or min(await (await self._get_model()).count_places(), MAX_PARALLEL_TASKS)

    def _load_agent(self, name: str) -> Agent:
        name = name.removeprefix("@").removeprefix("agent-").lower()
        agent = load_agent(self._toolbox.scope.agent_directories, name)
        check_agent_tools(agent, self._list_tool_names())
        return agent

    def _list_tool_names(self) -> list[str]:
        return [spec.name for spec in self._toolbox.registry.list()]

    def _may_write(self, agent: Agent | None) -> bool:
        if agent is None or agent.mode not in WRITING_MODES:
            return False
        specs = [self._toolbox.registry.get(name) for name in agent.tools]
        return not specs or any(spec and spec.category not in READING_CATEGORIES for spec in specs)

    def _make_options(self, request: TaskRequest, agent: Agent | None) -> ConversationOptions:
        storage = self._toolbox.storage
        if storage.session.id is None:
            raise ToolFailure("NotFound", "A task belongs to a conversation, and there is none here. Use the chat.")
        return ConversationOptions(
            workspace=storage.options.workspace,
            one_shot=True,
            interactive=storage.options.interactive,
            yes=storage.options.yes,
            mode=agent.mode if agent else "plan",
            parent=ParentCall(session_id=storage.session.id, call_id=request.call_id),
            max_steps=self._toolbox.process.settings.tools.task.max_steps,
        )

    def _build_prompt(self, request: TaskRequest, agent: Agent | None, folder: Path | None) -> str:
        words = int(self._toolbox.process.settings.tools.task.report_tokens * WORDS_PER_TOKEN)
        changes = "" if agent and agent.mode in WRITING_MODES else " Change nothing."
        changes = f" You work in {folder}, a copy of {self._toolbox.scope.path}." if folder else changes
        rules = (
            f"This is a part of a larger job.{changes} When you know enough, answer with a report of at most {words} "
            "words: what you found first, each fact with its file and line as path:line. Only this report is read."
        )
        begin = f"Begin with these files: {', '.join(request.files)}." if request.files else ""
        return "\n\n".join(filter(None, (agent.instructions if agent else "", request.prompt, begin, rules)))

    def _build_report(self, work: _TaskWork, session_id: str) -> TaskReport:
        limit = self._toolbox.process.settings.tools.task.report_tokens
        text = cut_text(work.text.strip(), limit, self._toolbox.count_tokens, "", tail_share=0)
        if not text:
            raise ToolFailure("Timeout" if work.timed_out else "Interrupted", work.problem or "It gave no report.")
        return TaskReport(
            text=text, session_id=session_id, steps=work.steps, files=tuple(work.files), problem=work.problem
        )


class _TaskWork:
    """One running task: its last text, the files it looked at, and why it ended."""

    def __init__(self, conversation: LocalConversation, emit: Callable[[str], None], limit: TaskLimit) -> None:
        self._conversation = conversation
        self._emit = emit
        self._limit = limit
        self.text = self.problem = ""
        self.steps = 0
        self.files: dict[str, None] = {}
        self.timed_out = False
        self.failure = ""

    async def run(self, prompt: str) -> None:
        try:
            async with self._limit.timer:
                reason = await self._take_turn(prompt)
                if reason == "loop":
                    reason = await self._ask_for_report()
        except TimeoutError:
            self.timed_out = True
            self.problem = f"The task was stopped after {self._limit.seconds:g} seconds."

    async def _ask_for_report(self) -> str:
        """Ask for a report after the step limit or a loop, since the findings so far are still useful."""
        before = self.problem
        self._conversation.parts.loops.configure(LoopSettings(max_turns=1))
        reason = await self._take_turn(CLOSING_REQUEST)
        self.problem = before if self.text.strip() else self.problem
        return reason

    async def _take_turn(self, text: str) -> str:
        self.text, reason = "", "model-error"
        async with self._conversation.turn(text) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    self.text += event.text
                elif isinstance(event, ToolStarted):
                    self._note_call(event)
                elif isinstance(event, Notice) and event.level != "info":
                    self._emit(f"{event.text}\n")
                elif isinstance(event, TurnFinished):
                    reason = event.reason
                    self.problem = _describe_end(event)
                    if reason in ("no-server", "model-error", "timeout") and not (self.steps or self.text):
                        self.failure = event.message
        return reason

    def _note_call(self, event: ToolStarted) -> None:
        self.steps += 1
        self.text = ""  # Only the last text is the answer.
        self._emit(f"{event.summary}\n")
        named = event.args.get("path") if event.name in ("read_file", "outline") else None
        paths = event.args.get("paths") if event.name == "read_many_files" else None
        for path in (named, *(paths if isinstance(paths, list | tuple) else ())):
            if isinstance(path, str) and path not in ("", "."):
                self.files[path] = None


def _describe_end(event: TurnFinished) -> str:
    if event.reason == "answered":
        return ""
    return f"The task ended early: {event.message or event.reason}".rstrip(".") + "."


UNSUITED_TOOLS = ("task", "goal", "write_todos")  # Plans are the parent's.


class TaskOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of a task: its parent's toolbox, the current model, its agent and its request. `question` is held while
    the person is asked. `folder` is a copy of the workspace, None for the workspace itself."""

    toolbox: Toolbox
    model: Model
    request: TaskRequest
    question: asyncio.Lock
    limit: TaskLimit
    agent: Agent | None = None
    folder: Path | None = None

    def create_toolbox(self, storage: Storage, stack: AsyncExitStack) -> TaskToolbox:
        return TaskToolbox(storage, stack, self)


class TaskAsker:
    """Asks the person for one task at a time, and names the task."""

    def __init__(self, asker: Asker, origin: TaskOrigin) -> None:
        self._asker = asker
        self._origin = origin

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        request = self._origin.request
        reason, call_id = f"{details.reason} · {request.title}", request.call_id or details.call_id
        with self._origin.limit.pause():
            async with self._origin.question:
                return await self._asker.ask(msgspec.structs.replace(details, reason=reason, call_id=call_id))


class TaskToolbox(Toolbox):
    """Tools of a task, with the parent's processes. Questions are asked in the parent's conversation, and what is
    granted there counts here. A task may never do more than its parent.

    In the workspace itself its changes belong to the turn of the parent: to its checkpoint, its checks and its /undo.
    What it changes in a copy, the parent records and checks when it comes back."""

    mcp = None  # The parent's servers are used.

    def __init__(self, storage: Storage, stack: AsyncExitStack, origin: TaskOrigin) -> None:
        super().__init__(storage, stack)
        self._parent = parent = origin.toolbox
        self._origin = origin
        self._agent = origin.agent
        self.host = parent.host
        if origin.folder is None:
            self.sandbox, self.diagnostics = parent.sandbox, parent.diagnostics
            self.checkpoint_observer, self.checks, self.edits = parent.checkpoint_observer, parent.checks, parent.edits
        else:
            emit, self.checks = storage.stream.emit, None
            self.checkpoint_observer = UnwatchedFiles(self.checkpoints, storage.session, emit, enabled=False)

    def find_diagnostics(self, path: Path) -> DiagnosticsService | None:
        """Start no language server for a copy, which exists for a short time."""
        return None if self._origin.folder else super().find_diagnostics(path)

    @cached_property
    def policy(self) -> PolicyEngine:
        engine = self.scope.create_policy((), self.sandbox)
        engine.grants, engine.find_newer_rules = self._parent.policy.grants, self._parent.find_newer_rules
        engine.approval = MODES[self.storage.mode].approval or self._parent.policy.approval
        if self._parent.policy.approval == "read-only":
            engine.approval = "read-only"
        return engine

    @cached_property
    def registry(self) -> ToolRegistry:
        registry = build_registry(self)
        for spec in self._parent.registry.list():
            if spec.category is None and registry.get(spec.name) is None:
                registry.register(spec)  # Policy decides which external tools may be called.
        wanted = self._agent.tools if self._agent else ()
        for spec in registry.list():
            if spec.name in UNSUITED_TOOLS or (wanted and spec.name not in wanted):
                registry.unregister(spec.name)
        return registry

    def create_asker(self, before: BeforeQuestion | None = None) -> Asker:
        asker = self._parent.create_asker(before)
        return TaskAsker(asker, self._origin) if self._parent.options.interactive else asker
