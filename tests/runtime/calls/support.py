"""Tools, a policy and a dispatch to run calls with."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

from ollm.config.settings import OutputSettings, ToolSettings
from ollm.domain.events import Event
from ollm.domain.messages import ToolCall
from ollm.domain.tools import (
    FileChange,
    Location,
    PolicyRequest,
    ToolCallRecord,
    ToolResult,
    Verdict,
)
from ollm.extensions.hooks import HookDecision
from ollm.runtime.calls.dispatch import CallServices, Dispatch
from ollm.system.paths import Boundary
from ollm.tools.framework.base import Tool, ToolContext, ToolRegistry


class Say(Tool[None], frozen=True):
    """Say a text."""

    name: ClassVar[str] = "say"
    reads_only: ClassVar[bool] = True
    text: str
    path: str | None = None

    def summary(self) -> str:
        return f"Say {self.text}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path)] if self.path is not None else []

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        context.emit(self.text)
        return ToolResult(llm_content=self.text, return_display=self.text)


class QuietHooks:
    """Hooks that say nothing."""

    async def before_tool(self, tool: str, arguments: dict[str, Any]) -> HookDecision:
        return HookDecision()

    async def after_tool(self, record: ToolCallRecord) -> str:
        return ""


class Log(Tool[list[str]], frozen=True):
    """Write down when it begins and ends."""

    name: ClassVar[str] = "log"
    text: str

    def summary(self) -> str:
        return f"Log {self.text}"

    async def list_changes(self, context: ToolContext, needs: list[str]) -> tuple[FileChange, ...]:
        return (FileChange(path="log", before="", after=self.text),)

    async def run(self, context: ToolContext, needs: list[str]) -> ToolResult:
        needs.append(f"begin {self.text}")
        await asyncio.sleep(0.01)
        needs.append(f"end {self.text}")
        return ToolResult(llm_content="done")


class Wait(Tool[list[str]], frozen=True):
    """Wait for ever."""

    name: ClassVar[str] = "wait"
    reads_only: ClassVar[bool] = True
    stubborn: bool = False

    def summary(self) -> str:
        return "Wait"

    async def run(self, context: ToolContext, needs: list[str]) -> ToolResult:
        needs.append("waiting")
        try:
            await asyncio.sleep(60)
        finally:
            if self.stubborn:
                await asyncio.sleep(1)
            needs.append("cleaned up")
        return ToolResult(llm_content="never")


class Break(Tool[Exception], frozen=True):
    """Break off."""

    name: ClassVar[str] = "break"

    def summary(self) -> str:
        return "Break"

    async def run(self, context: ToolContext, needs: Exception) -> ToolResult:
        raise needs


class Fixed:
    """Policy that says the same of everything."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.requests: list[PolicyRequest] = []

    def evaluate(self, request: PolicyRequest) -> Verdict:
        self.requests.append(request)
        return self.verdict


ALLOW = Verdict(decision="allow", reason="")


ASK = Verdict(decision="ask", reason="it changes files", grant="log:x")


DENY = Verdict(decision="deny", reason="the rule says no")


class Table:
    """A dispatch with everything it was told and everything it told."""

    def __init__(self, workspace: Path, verdict: Verdict = ALLOW, fault: Exception | None = None, **parts: Any) -> None:
        self.events: list[Event] = []
        self.records: list[ToolCallRecord] = []
        self.order: list[str] = []
        self.registry = ToolRegistry()
        self.registry.register(Say)
        self.registry.register(Log, self.order)
        self.registry.register(Wait, self.order)
        self.registry.register(Break, fault or ValueError("a bug"))
        self.policy = Fixed(verdict)
        output = parts.pop("output", OutputSettings())
        context = ToolContext(boundary=Boundary.around(workspace), settings=ToolSettings(output=output))
        parts.setdefault("record", self.record)
        services = CallServices(
            registry=self.registry, policy=self.policy, context=context, emit=self.events.append, **parts
        )
        self.dispatch = Dispatch(services)

    async def record(self, record: ToolCallRecord) -> None:
        self.records.append(record)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def run(self, *calls: tuple[str, Any]) -> list[ToolCallRecord]:
        return await self.dispatch.run(asked(*calls), 7)

    async def one(self, name: str, arguments: Any = None) -> ToolCallRecord:
        (record,) = await self.run((name, {} if arguments is None else arguments))
        return record


def asked(*calls: tuple[str, Any]) -> list[ToolCall]:
    return [
        ToolCall(id=f"c{number}", name=name, arguments=arguments) for number, (name, arguments) in enumerate(calls, 1)
    ]


class Editor:
    """Has one text of every file, not saved."""

    writes = False

    def withholds(self, _path: Path) -> bool:
        return False

    async def read(self, _path: Path) -> str | None:
        return "typed"

    async def write(self, _path: Path, _text: str) -> bool:
        return False
