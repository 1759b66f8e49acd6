"""Drives a tool as a turn does: through dispatch, with the real policy and a person who says yes."""

from pathlib import Path
from typing import Any

from ollm.config.settings import ToolSettings
from ollm.domain.events import Event
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, ToolCallRecord
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet
from ollm.runtime.calls.dispatch import Dispatch
from ollm.runtime.calls.tool_call import CallServices
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext, ToolRegistry


class Person:
    """Answers every question the same way, and remembers them."""

    def __init__(self, *, approves: bool = True) -> None:
        self.approves = approves
        self.asked: list[ConfirmationDetails] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details)
        return ConfirmationAnswer(approved=self.approves)


class Driver:
    """A workspace with tools in it. `await driver("read_file", path="a")` is one call and its record."""

    def __init__(
        self,
        workspace: Path,
        *,
        settings: ToolSettings | None = None,
        vision: bool = False,
        home: Path | None = None,
    ) -> None:
        self.workspace = workspace
        self.boundary = Boundary.around(workspace, user_home=home, ollm_home=home and home / ".ollm")
        self.registry = ToolRegistry()
        self.person = Person()
        self.events: list[Event] = []

        async def sees() -> bool:
            return vision

        context = ToolContext(boundary=self.boundary, settings=settings or ToolSettings(), sees=sees)
        policy = PolicyEngine(RuleSet(), self.boundary)
        services = CallServices(
            registry=self.registry, policy=policy, context=context, emit=self.events.append, asker=self.person
        )
        self.dispatch = Dispatch(services)
        self._count = 0

    async def __call__(self, tool: str, **arguments: Any) -> ToolCallRecord:
        self._count += 1
        (record,) = await self.dispatch.run([ToolCall(id=f"c{self._count}", name=tool, arguments=arguments)], 1)
        return record


def content(record: ToolCallRecord) -> str:
    assert record.error is None, record.error
    assert record.result is not None
    return record.result.llm_content


def error(record: ToolCallRecord) -> tuple[str, str]:
    assert record.error is not None, record.result
    return record.error.type, record.error.message
