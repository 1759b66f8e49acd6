"""One call on its way: parse → hooks → policy → confirmation → run → truncate → record (T10, T12)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.clock import Clock, monotonic, now, stamp
from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import Event, Notice, ToolFinished, ToolOutput, ToolStarted
from ollm.domain.messages import UNPARSED, Call
from ollm.domain.tools import Scope, ToolCallRecord, ToolResult
from ollm.extensions.base import NoHooks, ToolHooks
from ollm.policy.visible import visible_command
from ollm.runtime.calls.confirmation import Asker, Unattended
from ollm.runtime.calls.permission import Permission, Policy
from ollm.runtime.calls.results import failed, failure_of, recordable, recorded, shaped, status_of
from ollm.tools.framework.base import Invocation, ToolContext, ToolSpec
from ollm.tools.framework.output import StreamCleaner
from ollm.tools.framework.registry import ToolRegistry

log = logging.getLogger("ollm.dispatch")


async def _unrecorded(_record: ToolCallRecord) -> None:
    """Nothing is kept."""


def _forgotten(_grant: str, _scope: Scope) -> None:
    """Grants count for the one call."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What running calls takes. `record` gets each call when it starts and again when it has ended; `remember` gets
    the grants that a person gave for the session or for good."""

    registry: ToolRegistry
    policy: Policy
    context: ToolContext
    emit: Callable[[Event], None]
    asker: Asker = Unattended()
    hooks: ToolHooks = NoHooks()
    record: Callable[[ToolCallRecord], Awaitable[None]] = _unrecorded
    remember: Callable[[str, Scope], object] = _forgotten
    clock: Clock = now
    monotonic: Callable[[], float] = monotonic


class OneCall:
    """Ends exactly once: `finish` after the first time does nothing."""

    def __init__(self, desk: Desk, call_id: str, call: Call, message_id: int, limits: OutputSettings) -> None:
        self.record = ToolCallRecord(
            id=call_id,
            name=call.name,
            args=recordable(call.arguments),
            timestamp=stamp(desk.clock()),
            message_id=message_id,
        )
        self._desk = desk
        self._arguments: Any = given(call.arguments)
        self._spec: ToolSpec | None = desk.registry.get(call.name)
        self._limits = limits
        self._invocation: Invocation | None = None
        self._permission = Permission(desk.policy, desk.asker, desk.remember)
        self._boundary = desk.context.boundary
        self._began = desk.monotonic()
        self._started = False
        self._finished = False

    @property
    def reads_only(self) -> bool:
        return self._spec is not None and self._spec.reads_only

    async def record_start(self) -> None:
        await self._write()

    async def prepare(self) -> bool:
        """Everything before it runs; False when it has ended here, with the reason as its result."""
        try:
            self._invocation = await self._parsed()
            self._boundary = await self._permission.boundary(
                self._spec_found(), self._invocation, self._desk.context, self.record.id
            )
        except Exception as error:  # noqa: BLE001 - the edge of a call: whatever happens becomes its one result
            await self.finish(self._failure(error))
            return False
        self._began = self._desk.monotonic()
        return True

    async def run(self) -> ToolResult:
        """The tool's own work. Never raises, except for cancellation."""
        assert self._invocation is not None
        stream = StreamCleaner(lambda text: self._desk.emit(ToolOutput(call_id=self.record.id, text=text)))
        context = msgspec.structs.replace(self._desk.context, emit=stream.feed, boundary=self._boundary)
        try:
            return await self._invocation.run(context)
        except Exception as error:  # noqa: BLE001 - the edge of a call: whatever happens becomes its one result
            return self._failure(error)
        finally:
            stream.close()

    async def finish(self, result: ToolResult) -> None:
        """Shape the result, record it, tell it."""
        if self._finished:
            return
        self._finished = True
        self._announce(self.record.name)
        keep = self._spec.keep if self._spec else "head"
        result = shaped(result, self._limits, keep, self._way_back())
        self.record = msgspec.structs.replace(
            self.record, result=recorded(result), status=status_of(result), error=result.error
        )
        await self._write()
        seconds = round(self._desk.monotonic() - self._began, 3)
        status, name = self.record.status, self.record.name
        self._desk.emit(ToolFinished(call_id=self.record.id, name=name, status=status, result=result, seconds=seconds))
        await self._tell_hooks()

    def _spec_found(self) -> ToolSpec:
        if self._spec is not None:
            return self._spec
        near = self._desk.registry.nearest(self.record.name)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(self._names())}."
        raise ToolFailure("UnknownTool", f'There is no tool named "{self.record.name[:100]}". {hint}')

    async def _parsed(self) -> Invocation:
        spec = self._spec_found()
        invocation = spec.parse(self._arguments)
        self._announce(visible_command(invocation.summary()))
        decision = await self._desk.hooks.before_tool(spec.name, invocation.params)
        if decision.blocked is not None:
            raise ToolFailure("Denied", f"Not run: a hook blocked it: {decision.blocked}")
        if decision.arguments is None:
            return invocation
        self.record = msgspec.structs.replace(self.record, args=recordable(decision.arguments))
        return spec.parse(decision.arguments)

    def _announce(self, summary: str) -> None:
        if not self._started:
            self._started = True
            call_id, name = self.record.id, self.record.name
            self._desk.emit(ToolStarted(call_id=call_id, name=name, summary=summary, args=self.record.args))

    async def _write(self) -> None:
        try:
            await self._desk.record(self.record)
        except (OllmError, OSError) as error:
            self._desk.emit(Notice(level="error", text=f"A tool call could not be recorded: {error}"))

    async def _tell_hooks(self) -> None:
        try:
            await self._desk.hooks.after_tool(self.record)
        except Exception as error:  # noqa: BLE001 - the call has ended; what watches it cannot undo that
            self._desk.emit(Notice(level="warning", text=f"A hook after {self.record.name} failed: {error}"))

    def _failure(self, error: Exception) -> ToolResult:
        failure = failure_of(error)
        if failure.kind == "Interrupted":
            log.error("A tool broke off.", exc_info=error, extra={"operation": self.record.name})
        return failed(failure.kind, str(failure))

    def _way_back(self) -> str:
        if self._desk.registry.get("recall") is None:
            return ""
        return f'read it with recall {{"callId": "{self.record.id}", "startLine": LINE}}'

    def _names(self) -> list[str]:
        return [spec.name for spec in self._desk.registry.list()]


def given(arguments: Any) -> Any:
    """What the model wrote, also where it was no object and had to be wrapped to be recorded."""
    if isinstance(arguments, dict) and arguments.keys() == {UNPARSED}:
        return arguments[UNPARSED]
    return arguments
