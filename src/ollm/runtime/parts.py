"""What a conversation is made of. `app` puts it together; commands change the model, mode and approval in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from ollm.domain.clock import Clock, monotonic, now
from ollm.domain.context import Approval
from ollm.runtime.base import Status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from ollm.config.settings import Settings
    from ollm.domain.tools import ToolSchema
    from ollm.domain.workspace import PlanState
    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.message_bus import MessageBus
    from ollm.runtime.calls.late_dispatch import LazyDispatch
    from ollm.runtime.custom_commands import CustomCommands
    from ollm.runtime.event_stream import EventStream
    from ollm.runtime.model.model import Model
    from ollm.runtime.plan import Plan
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.runtime.resume.saved_context import ResumePoint
    from ollm.runtime.resume.workspace_sessions import WorkspaceContext
    from ollm.runtime.session import OpenSession
    from ollm.runtime.turn_observer import TurnObserver
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.loop_detection import LoopDetectionService
    from ollm.services.snapshots import SnapshotManager
    from ollm.store.notes import NoteStore
    from ollm.tools.framework.registry import ToolRegistry


class LazyParts(Protocol):
    """Parts that are built when they are first asked for: a short conversation never asks for most of them."""

    @property
    def registry(self) -> ToolRegistry: ...

    @property
    def policy(self) -> PolicyEngine: ...

    @property
    def bus(self) -> MessageBus: ...

    @property
    def snapshots(self) -> SnapshotManager: ...

    @property
    def edits(self) -> EditLedger: ...

    @property
    def notes(self) -> NoteStore: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def workspace_context(self) -> WorkspaceContext: ...

    @property
    def custom_commands(self) -> CustomCommands: ...

    @property
    def approval(self) -> Approval:
        """What runs without a question now."""
        ...


class ConversationView:
    """What the workspace's record tells of a conversation, as it is now."""

    def __init__(self, parts: ConversationParts) -> None:
        self._parts = parts

    @property
    def title(self) -> str:
        return self._parts.session.title

    @property
    def model(self) -> str:
        return self._parts.model.name

    @property
    def plan(self) -> PlanState:
        return self._parts.late.plan.get_state()

    @property
    def last_changed_number(self) -> int:
        """The newest message of a resumed session whose context was changed by commands; 0 when it was not."""
        from ollm.runtime.resume.saved_context import ResumePoint

        before = self._parts.taken_up
        return (
            before.last_number
            if before and before != ResumePoint.from_prompt(self._parts.prompt, before.last_number)
            else 0
        )

    @property
    def just_compressed(self) -> bool:
        return self._parts.prompt.just_compressed

    def encode_saved_context(self, last_number: int) -> bytes:
        from ollm.runtime.resume.saved_context import SavedContext

        return msgspec.json.encode(SavedContext.from_prompt(self._parts.prompt, last_number))


class ConversationParts(msgspec.Struct, kw_only=True):
    """Handed in, never built here."""

    workspace: Path
    settings: Settings
    session: OpenSession
    stream: EventStream
    model: Model
    prompt: Prompt
    loops: LoopDetectionService
    dispatch: LazyDispatch
    late: LazyParts
    closing: AsyncExitStack
    choose_model: Callable[[str], Awaitable[Model]]
    trust: Callable[[bool], str]
    export: Callable[[str, Path], None]
    mcp: McpServers | None = None
    asked_to_close: Callable[[], bool] = lambda: False
    approval: Approval = "ask"  # what was chosen, apart from what a mode imposes
    auto_switch: Literal["off", "propose", "on"] = "propose"
    proposed: set[str] = msgspec.field(default_factory=set)  # modes that were spoken of already
    last_loop: str = ""
    taken_up: ResumePoint | None = None  # where a resumed session stood
    notices: list[str] = msgspec.field(default_factory=list)  # what the person is told when it opens
    observers: list[TurnObserver] = msgspec.field(default_factory=list)
    mode_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    context_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    clock: Clock = now
    monotonic: Callable[[], float] = monotonic

    def update_tools(self) -> None:
        """Show the model the tools of its mode."""
        from ollm.tools.framework.tool_selection import select_tools

        schemas, facts = self.late.registry.get_function_schemas(), self.model.facts
        mode, window, most = self.prompt.mode, self.model.window, facts.max_tools
        self.prompt.set_forms(facts)
        self.prompt.set_tools(
            select_tools(mode, schemas, window, most),
            when_folded=lambda: select_tools(mode, schemas, window, most, folded=True),
        )

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        return self.prompt.tools

    def get_status(self) -> Status:
        budget = self.prompt.compute_budget()
        return Status(
            session_id=self.session.id,
            title=self.session.title,
            model=self.model.name,
            provider=self.model.provider.name,
            base_url=self.model.provider.base_url,
            window=self.model.window,
            mode=self.prompt.mode,
            approval=self.late.approval,
            workspace=str(self.workspace),
            used=self.prompt.used_tokens,
            limit=budget.limit,
            trigger=budget.trigger,
            fixed=budget.fixed + budget.checkpoints,
            todos=self.late.notes.list_todos() if self.session.id else (),
            notices=tuple(self.notices),
        )
