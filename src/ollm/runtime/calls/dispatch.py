"""Runs tool calls (T10, T12): each is parsed, judged, confirmed, run, truncated and recorded, and gets one result.

Delivery: every call has one `ToolStarted`, any number of `ToolOutput`, one `ToolFinished`, and one finished
`ToolCallRecord`, whatever happens. Cancelling `run` ends the tools, records every unfinished call as
cancelled, and then propagates the cancellation.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.clock import Clock, format_stamp, make_id, monotonic, now
from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import Event, Notice, ToolFinished, ToolOutput, ToolStarted
from ollm.domain.lazy import compile_late
from ollm.domain.messages import UNPARSED_KEY, JsonObject, ToolCall
from ollm.domain.text import format_names, suggest_names
from ollm.domain.tools import (
    MAX_SUMMARY_CHARS,
    AnsweredQuestion,
    CallStatus,
    ErrorInfo,
    GrantScope,
    RecordedResult,
    ToolCallRecord,
    ToolResult,
)
from ollm.runtime.base import ChangeWatch, sanitize_arguments, start_record
from ollm.runtime.calls.permission import (
    AnswerLog,
    Asker,
    UserAsker,
    build_confirmation,
    build_policy_request,
)
from ollm.system.paths import make_tool_failure as file_failure
from ollm.system.paths import show_name
from ollm.system.terminal_text import render_command
from ollm.tools.framework.base import Invocation, Keep, ToolContext, ToolRegistry, ToolSpec
from ollm.tools.framework.output import StreamCleaner, clean_text, trim_for_session, trim_output

if TYPE_CHECKING:
    from ollm.extensions.hooks import Hooks
    from ollm.policy.engine import PolicyEngine

log = logging.getLogger("ollm.dispatch")
MAX_NAMED_TOOLS = 60
MAX_LISTED_FILES = 2_000
SHELL_NAMES = frozenset(
    {"bash", "sh", "run", "terminal", "execute", "run_command", "run_shell_command", "execute_command"}
)
_UNKNOWN = compile_late(r'^- (\w+): no such parameter; did you mean "(\w+)"\?$', re.MULTILINE)


async def discard_record(_record: ToolCallRecord) -> None:
    """Discard the record."""


class CallServices(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of tool calls. `record` gets each call when it starts and again when it ends. `remember`
    gets the grants that the user gave for the session or permanently."""

    registry: ToolRegistry
    policy: PolicyEngine
    context: ToolContext
    emit: Callable[[Event], None]
    asker: Asker = UserAsker()
    answers: AnswerLog = msgspec.field(default_factory=AnswerLog)
    hooks: Hooks | None = None
    record: Callable[[ToolCallRecord], Awaitable[None]] = discard_record
    remember: Callable[[str, GrantScope], object] = lambda _grant, _scope: None
    changes: ChangeWatch = ChangeWatch()
    clock: Clock = now
    monotonic: Callable[[], float] = monotonic

    async def authorize_call(self, spec: ToolSpec, invocation: Invocation, call_id: str, must_ask: str) -> ToolContext:
        """Return the context for this call, with what was approved for it only. Raises ToolFailure if it may not run at
        all. `must_ask` is the reason to ask the user even if policy allows the call."""
        context = self.context
        verdict = self.policy.evaluate(build_policy_request(spec, invocation, context.boundary))
        if must_ask and verdict.decision == "allow":
            verdict = msgspec.structs.replace(verdict, decision="ask", reason=must_ask, grant=None, locked=True)
        if verdict.decision == "deny":
            raise ToolFailure(verdict.error_type, f"Not run: {verdict.reason}")
        if verdict.decision == "allow":
            return msgspec.structs.replace(context, unasked=verdict.reads)
        details = await build_confirmation(spec, invocation, context, verdict)
        answer = await self.asker.ask(msgspec.structs.replace(details, call_id=call_id))
        if not answer.approved:
            raise ToolFailure(verdict.error_type, f"Not run: {answer.reason or 'the user declined.'}")
        if answer.scope != "once" and verdict.grant and not verdict.locked:
            self.remember(verdict.prefix if answer.prefix and verdict.prefix else verdict.grant, answer.scope)
        boundary = context.boundary.approve_paths(map(Path, verdict.approve))
        return msgspec.structs.replace(context, boundary=boundary, approved=verdict.approve, outside=verdict.outside)


class ToolCallRun:
    """One tool call. It ends exactly once: later calls of `finish` do nothing."""

    def __init__(self, services: CallServices, call: ToolCall, message_id: int) -> None:
        given: Any = call.arguments  # Arguments that are no object are recorded as one.
        wrapped = isinstance(given, dict) and given.keys() == {UNPARSED_KEY}
        self._arguments: Any = given[UNPARSED_KEY] if wrapped else given
        self._spec: ToolSpec | None = services.registry.get(call.name) or find_meant_spec(call, services.registry)
        record = start_record(call, timestamp=format_stamp(services.clock()))
        name = self._spec.name if self._spec else call.name
        self.record = msgspec.structs.replace(record, name=name, message_id=message_id)
        self._services = services
        self._invocation: Invocation | None = None
        self._context = services.context
        self._began = services.monotonic()
        self._started = False
        self._finished = False
        self._questions: tuple[AnsweredQuestion, ...] = ()
        self._must_ask = ""
        self._printed: list[str] = []

    @property
    def parallel_group(self) -> str:
        """Calls in a row with the same group run in parallel; those without one run alone."""
        if self._spec is None:
            return ""
        return "reading" if self._spec.reads_only else self._spec.name if self._spec.side_by_side else ""

    @property
    def _may_change_files(self) -> bool:
        """True unless the call only reads, by its declaration or by policy, or writes only to our notes."""
        spec = self._require_spec()
        return not (spec.reads_only or self._context.unasked or spec.category in ("read", "notes", "web"))

    def _find_written_files(self) -> list[str] | None:
        """List the files the call writes. Return None if it does not name them or hooks or checks may write others."""
        if self._require_spec().category != "write" or self._services.hooks or self._services.context.check_edit:
            return None
        assert self._invocation is not None
        return [location.target for location in self._invocation.tool.locations()]

    async def prepare(self) -> bool:
        """Parse and authorize the call. Return False if it ended here, with the reason as its result."""
        self._services.answers.begin_call(self.record.id)
        try:
            self._invocation = await self._parse_call()
            self._context = await self._services.authorize_call(
                self._require_spec(), self._invocation, self.record.id, self._must_ask
            )
        except Exception as error:  # noqa: BLE001 - the edge of a call: whatever happens becomes its one result
            await self.finish(self._log_and_build_failure(error))
            return False
        self._began = self._services.monotonic()
        return True

    async def run(self, *, side_by_side: bool = False) -> ToolResult:
        """Run the tool. Never raises, except for cancellation."""
        assert self._invocation is not None
        stream = StreamCleaner(self._emit_output)
        context = msgspec.structs.replace(
            self._context,
            emit=stream.feed,
            call_id=self.record.id if self._services.record is not discard_record else "",
            side_by_side=side_by_side,
        )
        try:
            if self._may_change_files:
                await self._services.changes.before_change(self._find_written_files())
            if context.editor is not None:
                from ollm.tools.files.file_change import load_buffers

                context = await load_buffers(context, self._invocation.tool.locations())
            return await self._invocation.run(context)
        except Exception as error:  # noqa: BLE001 - the edge of a call: whatever happens becomes its one result
            return self._log_and_build_failure(error)
        finally:
            stream.close()

    def _emit_output(self, text: str) -> None:
        self._printed.append(text)
        self._services.emit(ToolOutput(call_id=self.record.id, text=text))

    async def finish(self, result: ToolResult) -> None:
        """Trim the result, record it and emit its event."""
        if self._finished:
            return
        self._finished = True
        self._questions = self._services.answers.end_call(self.record.id)
        result = keep_output(result, "".join(self._printed))
        self._announce()
        keep = self._spec.keep if self._spec else "head"
        hint = f'read it with recall {{"callId": "{self.record.id}", "startLine": LINE}}'
        result = trim_result(
            result, self._services.context.settings.output, keep, hint if self._services.registry.get("recall") else ""
        )
        self._set_result(result)
        words = await self._run_after_hooks()
        late = self._services.context.take_late_errors()
        if added := [*([f"[hook] {words}"] if words else []), *([late] if late else [])]:
            result = msgspec.structs.replace(result, llm_content="\n\n".join((result.llm_content, *added)))
            self._set_result(result)
        await self.write_record()
        seconds = round(self._services.monotonic() - self._began, 3)
        status, name = self.record.status, self.record.name
        self._services.emit(
            ToolFinished(call_id=self.record.id, name=name, status=status, result=result, seconds=seconds)
        )

    def _set_result(self, result: ToolResult) -> None:
        fields = msgspec.structs.asdict(result)
        del fields["error"]
        kept = RecordedResult(**fields, questions=self._questions)
        status = "ok" if result.error is None else _STATUS.get(result.error.type, "failed")
        self.record = msgspec.structs.replace(self.record, result=kept, status=status, error=result.error)

    def _require_spec(self) -> ToolSpec:
        if self._spec is not None:
            return self._spec
        near = self._services.registry.find_nearest(self.record.name)
        names = [spec.name for spec in self._services.registry.list()]
        listed = f"Available: {format_names(names, MAX_NAMED_TOOLS)}."
        hint = f"Did you mean {' or '.join(near)}?" if near else listed
        raise ToolFailure("UnknownTool", f'There is no tool named "{self.record.name[:100]}". {hint}')

    async def _parse_call(self) -> Invocation:
        spec = self._require_spec()
        invocation = self._parse_arguments(spec)
        self._announce(self._keep_summary(invocation))
        if not (hooks := self._services.hooks):
            return invocation
        decision = await hooks.before_tool(spec.name, invocation.tool.list_parameters())
        if decision.blocked is not None:
            raise ToolFailure("Denied", f"Not run: a hook blocked it: {decision.blocked}")
        self._must_ask = decision.ask
        if decision.arguments is None:
            return invocation
        self.record = msgspec.structs.replace(self.record, args=sanitize_arguments(decision.arguments))
        changed = spec.parse(decision.arguments)
        self._keep_summary(changed)
        return changed

    def _keep_summary(self, invocation: Invocation) -> str:
        shown = render_command(invocation.tool.summary())
        summary = " ".join(shown.split())[:MAX_SUMMARY_CHARS]
        self.record = msgspec.structs.replace(self.record, summary=summary)
        return shown

    def _parse_arguments(self, spec: ToolSpec) -> Invocation:
        """Parse the arguments as written, or with misspelled parameter names corrected."""
        try:
            return spec.parse(self._arguments)
        except ToolFailure as failure:
            renamed = rename_parameters(str(failure), self._arguments)
            if not renamed:
                raise
            try:
                invocation = spec.parse(renamed)
            except ToolFailure:
                raise failure from None
        self._arguments = renamed
        self.record = msgspec.structs.replace(self.record, args=sanitize_arguments(renamed))
        return invocation

    def _announce(self, summary: str = "") -> None:
        """Announce the call, once. A refused one has no summary: its tool and its file or command are named."""
        if self._started:
            return
        self._started = True
        call_id, name, args = self.record.id, self.record.name, self.record.args
        target = args.get("path") or args.get("command") or ""
        summary = summary or " ".join(render_command(f"{name} {target}").split())[:MAX_SUMMARY_CHARS]
        self._services.emit(ToolStarted(call_id=call_id, name=name, summary=summary, args=args))

    async def write_record(self) -> None:
        try:
            await self._services.record(self.record)
        except (OllmError, OSError) as error:
            self._services.emit(Notice(level="error", text=f"A tool call could not be recorded: {error}"))

    async def _run_after_hooks(self) -> str:
        """Run the hooks after the call. Return their text for the model."""
        if not (hooks := self._services.hooks):
            return ""
        try:
            return await hooks.after_tool(self.record)
        except Exception as error:  # noqa: BLE001 - the call has ended; what watches it cannot undo that
            self._services.emit(Notice(level="warning", text=f"A hook after {self.record.name} failed: {error}"))
            return ""

    def _log_and_build_failure(self, error: Exception) -> ToolResult:
        failure = to_tool_failure(error)
        if failure.kind == "Interrupted":
            log.error("A tool crashed.", exc_info=error, extra={"operation": self.record.name})
        return build_failure(failure.kind, " ".join(filter(None, (str(failure), self._suggest_file(failure)))))

    def _suggest_file(self, failure: ToolFailure) -> str:
        path = self._arguments.get("path") if isinstance(self._arguments, dict) else None
        workspace = self._services.context.workspace
        if failure.kind == "FileNotFound" and not workspace.exists():
            return f"The workspace {workspace} is gone: it was moved or deleted."
        if failure.kind != "FileNotFound" or not isinstance(path, str):
            return ""
        near = find_near_file(path, workspace)
        return f"Did you mean {show_name(near)}?" if near else ""


def find_meant_spec(call: ToolCall, registry: ToolRegistry) -> ToolSpec | None:
    """Find the only tool for another spelling of its name (`ReadFile`, `read-file`), or for a common shell name."""
    names = [spec.name for spec in registry.list()]
    given: Any = call.arguments
    if call.name.lower() in SHELL_NAMES and isinstance(given, dict) and "command" in given and "shell" in names:
        return registry.get("shell")
    alike = [tool for tool in names if _fold(tool) == _fold(call.name)]
    return registry.get(alike[0]) if len(alike) == 1 else None


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def rename_parameters(message: str, arguments: Any) -> dict[str, Any]:
    """Rename unknown parameters as the validation error suggests. Return {} if it suggests nothing, or a name that is
    already in use."""
    new_names: dict[str, str] = dict(_UNKNOWN.findall(message))
    if not isinstance(arguments, dict) or not new_names or any(name in arguments for name in new_names.values()):
        return {}
    return {new_names.get(str(key), str(key)): value for key, value in arguments.items()}


def find_near_file(path: str, workspace: Path) -> str:
    """Find the only file with that name elsewhere, or the most similar path; "" if the workspace is too large."""
    names: list[str] = []
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        place = Path(folder).relative_to(workspace)
        names += [(place / name).as_posix() for name in files if not name.startswith(".")]
        if len(names) > MAX_LISTED_FILES:
            return ""
    same = [name for name in names if Path(name).name == Path(path).name]
    alike = [name for name in names if suggest_names(Path(path).stem, [Path(name).stem])]
    near = same if len(same) == 1 else suggest_names(path, alike)
    return near[0] if near else ""


_STATUS: dict[str, CallStatus] = {"Denied": "denied", "OutsideWorkspace": "denied", "Cancelled": "cancelled"}


def build_failure(kind: str, message: str) -> ToolResult:
    message = clean_text(message)
    return ToolResult(
        llm_content=f"Error {kind}: {message}", return_display=message, error=ErrorInfo(type=kind, message=message)
    )


def keep_output(result: ToolResult, printed: str) -> ToolResult:
    """Add the output printed so far to the result of a cancelled call."""
    if result.error is None or result.error.type != "Cancelled" or not printed:
        return result
    text = f"{printed.rstrip()}\n[{result.error.message}]"
    return msgspec.structs.replace(result, llm_content=text, return_display=text)


def to_tool_failure(error: Exception) -> ToolFailure:
    """Convert any exception to a failure for the model. An unexpected one is reported as a crash."""
    match error:
        case ToolFailure():
            return error
        case OSError() if error.errno is not None:
            return file_failure(error, str(error.filename or "A file"))
        case OllmError():
            return ToolFailure("Interrupted", str(error))
        case RecursionError():
            return ToolFailure("ValidationError", "The arguments are nested too deeply.")
    return ToolFailure("Interrupted", f"The tool crashed ({type(error).__name__}: {error}).")


def trim_result(result: ToolResult, limits: OutputSettings, keep: Keep, way_back: str) -> ToolResult:
    """Clean the result and trim it to the limits. Trimmed text stays in `full_output`."""
    short = trim_output(clean_text(result.llm_content), limits, keep=keep, way_back=way_back)
    full = short.full if result.full_output is None else trim_for_session(clean_text(result.full_output))
    return msgspec.structs.replace(
        result,
        llm_content=short.text,
        full_output=full,
        return_display=trim_output(clean_text(result.return_display), limits, keep=keep).text,
        diff=clean_text(result.diff),
    )


MAX_PARALLEL_CALLS = 8
CANCEL_GRACE_SECONDS = 0.1


class Dispatch:
    """Runs the calls of one conversation."""

    def __init__(self, services: CallServices) -> None:
        self._services = services
        self._left_over: set[asyncio.Task[ToolResult]] = set()

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> list[ToolCallRecord]:
        """Return one record per call, in order. Reading calls and tasks run in parallel, the rest one by one."""
        ones = [ToolCallRun(self._services, call, message_id) for call in calls]
        try:
            for one in ones:
                await one.write_record()
            for parallel, group in groupby(ones, key=lambda one: one.parallel_group):
                if parallel:
                    await self._run_in_parallel(list(group))
                    continue
                for one in group:
                    if await one.prepare():
                        await self._run_tool(one)
        except asyncio.CancelledError:
            await self._finish_all(
                ones, build_failure("Cancelled", "The turn was cancelled before this call finished.")
            )
            raise
        await self._services.changes.after_changes()
        return [one.record for one in ones]

    async def run_unrecorded(self, name: str, *arguments: JsonObject) -> list[ToolCallRecord]:
        """Run calls for the user with the same policy and sandbox, but without a record or a file checkpoint."""
        services = msgspec.structs.replace(self._services, record=discard_record, changes=ChangeWatch())
        calls = [ToolCall(id=f"own-{make_id()}", name=name, arguments=each) for each in arguments]
        return await Dispatch(services).run(calls, 0)

    async def refuse(self, calls: Sequence[ToolCall], message_id: int, kind: str, message: str) -> list[ToolCallRecord]:
        """Answer every call with the same failure, without running any."""
        ones = [ToolCallRun(self._services, call, message_id) for call in calls]
        await self._finish_all(ones, build_failure(kind, message))
        return [one.record for one in ones]

    async def close(self) -> None:
        """Wait for cancelled tools that are still cleaning up."""
        if self._left_over:
            await asyncio.wait(self._left_over)

    async def _run_in_parallel(self, ones: list[ToolCallRun]) -> None:
        """Ask for confirmations one at a time, then run the approved calls in parallel."""
        ready = [one for one in ones if await one.prepare()]
        if len(ready) == 1:
            await self._run_tool(ready[0])
            return
        places = asyncio.Semaphore(MAX_PARALLEL_CALLS)

        async def run(one: ToolCallRun) -> None:
            async with places:
                await self._run_tool(one, side_by_side=True)

        async with asyncio.TaskGroup() as group:
            for one in ready:
                group.create_task(run(one))

    async def _run_tool(self, one: ToolCallRun, *, side_by_side: bool = False) -> None:
        """Run a tool. If cancelled, it has a moment to clean up; `close` waits for one that takes longer."""
        task = asyncio.create_task(one.run(side_by_side=side_by_side))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_GRACE_SECONDS)
            if not task.done():
                self._left_over.add(task)
                task.add_done_callback(self._left_over.discard)
            elif not task.cancelled():
                await one.finish(task.result())
            raise
        await one.finish(build_failure("Cancelled", "The tool was cancelled.") if task.cancelled() else task.result())

    async def _finish_all(self, ones: list[ToolCallRun], result: ToolResult) -> None:
        for one in ones:
            await one.finish(result)
