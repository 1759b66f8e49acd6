"""What the calls of a task run with: its parent's sandbox, processes, questions and grants, and its agent's tools."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ollm.app.storage import Storage
from ollm.app.toolbox import Toolbox

if TYPE_CHECKING:
    from ollm.domain.tasks import Agent
    from ollm.policy.engine import PolicyEngine
    from ollm.runtime.calls.change_watch import ChangeWatch
    from ollm.runtime.calls.confirmation import Asker, BeforeQuestion
    from ollm.runtime.model.model import Model
    from ollm.services.edit_ledger import EditLedger
    from ollm.system.processes import ProcessHost
    from ollm.system.sandbox.sandbox import Sandbox
    from ollm.tools.framework.registry import ToolRegistry

UNSUITED_TOOLS = ("task", "goal", "write_todos")  # no task inside a task; plans are the parent's


class TaskOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task comes from: the calls of its parent, the model that talks there, and the agent it is for."""

    toolbox: Toolbox
    model: Model
    agent: Agent | None = None


class TaskToolbox(Toolbox):
    """What a task's calls run with: the parent's sandbox and processes. What must be asked is asked in the parent's
    conversation, and what is granted there counts here. A task may never do more than its parent."""

    mcp = None  # the servers are the parent's: no others are started

    def __init__(self, storage: Storage, stack: AsyncExitStack, origin: TaskOrigin) -> None:
        super().__init__(storage, stack, origin.toolbox.attached)
        self._parent = origin.toolbox
        self._agent = origin.agent

    @property
    def takes_checkpoints(self) -> bool:
        """What a task changes belongs to the turn of its parent."""
        return False

    @property
    def change_watch(self) -> ChangeWatch:
        return self._parent.change_watch

    @cached_property
    def policy(self) -> PolicyEngine:
        from ollm.services.modes import MODES

        engine = self.scope.create_policy((), self.sandbox)
        engine.grants = self._parent.policy.grants
        engine.approval = MODES[self.storage.mode].approval or self._parent.policy.approval
        if self._parent.policy.approval == "read-only":
            engine.approval = "read-only"
        return engine

    @cached_property
    def registry(self) -> ToolRegistry:
        from ollm.tools.catalogue import build_registry

        registry = build_registry(self, self.process.tool_cache)
        for spec in self._parent.registry.list():
            if spec.category is None and registry.get(spec.name) is None:
                registry.register(spec)  # of the parent's servers and extensions; policy says which may be called
        wanted = self._agent.tools if self._agent else ()
        for spec in registry.list():
            if spec.name in UNSUITED_TOOLS or (wanted and spec.name not in wanted):
                registry.unregister(spec.name)
        return registry

    @cached_property
    def sandbox(self) -> Sandbox:
        return self._parent.sandbox

    @cached_property
    def host(self) -> ProcessHost:
        return self._parent.host

    @cached_property
    def edits(self) -> EditLedger:
        """The parent's: /undo takes back what its tasks did."""
        return self._parent.edits

    def create_asker(self, before: BeforeQuestion | None = None) -> Asker:
        return self._parent.create_asker(self._parent.checkpoint_observer.get().before_question)
