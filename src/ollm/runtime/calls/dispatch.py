"""How calls are run: each is parsed, judged, confirmed, run and recorded, and gets one result.

Delivery: for every call one `ToolStarted`, any number of `ToolOutput`, one `ToolFinished`, and one finished
`ToolCallRecord`, whatever happens. Cancelling `run` ends the tools, records every call that had not ended as
cancelled, and then goes on being a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.events import Notice
from ollm.domain.messages import JsonObject, ToolCall
from ollm.domain.tools import ToolCallRecord, ToolResult
from ollm.runtime.base import ChangeWatch
from ollm.runtime.calls.tool_call import CallServices, ToolCallRun, build_failure, discard_record

MAX_PARALLEL_CALLS = 8
CANCEL_GRACE_SECONDS = 0.1


class Dispatch:
    """Runs the calls of one conversation. `max_step_chars` is how many characters the results of a step
    may take together."""

    def __init__(self, services: CallServices, max_step_chars: Callable[[], int | None] = lambda: None) -> None:
        self._services = services
        self._max_step_chars = max_step_chars
        self._used_ids: set[str] = set()
        self._left_over: set[asyncio.Task[ToolResult]] = set()

    async def run(self, calls: Sequence[ToolCall], message_id: int) -> list[ToolCallRecord]:
        """One record per call, in the order asked. Calls that only read run side by side, the rest in order."""
        limits = self._share_limits(len(calls))
        ones = [self._create_call(call, message_id, limits) for call in calls]
        try:
            for one in ones:
                await one.record_start()
            for reads_only, group in groupby(ones, key=lambda one: one.reads_only):
                if reads_only:
                    await self._run_in_parallel(list(group))
                else:
                    for one in group:
                        await self._run_in_order(one)
        except asyncio.CancelledError:
            await self._finish_all(
                ones, build_failure("Cancelled", "The turn was cancelled before this call finished.")
            )
            raise
        self.look_after_boxes()
        await self._services.changes.after_changes()
        return [one.record for one in ones]

    async def run_unrecorded(self, name: str, arguments: JsonObject) -> ToolCallRecord:
        """Run a call of the person: the same policy and box, but no record, and no checkpoint of the files."""
        services = msgspec.structs.replace(self._services, record=discard_record, changes=ChangeWatch())
        (record,) = await Dispatch(services).run([ToolCall(id="own", name=name, arguments=arguments)], 0)
        return record

    def look_after_boxes(self) -> None:
        """Move aside what background jobs and servers made that steers tools; done at every step's end."""
        sandbox = self._services.context.sandbox
        if sandbox is not None and (taken := sandbox.look()):
            from ollm.system.sandbox.watch import describe_taken

            self._services.emit(Notice(level="warning", text=describe_taken(taken)))

    async def refuse(self, calls: Sequence[ToolCall], message_id: int, kind: str, message: str) -> list[ToolCallRecord]:
        """Answer every call with the same failure, without running any."""
        limits = self._share_limits(len(calls))
        ones = [self._create_call(call, message_id, limits) for call in calls]
        await self._finish_all(ones, build_failure(kind, message))
        return [one.record for one in ones]

    async def close(self) -> None:
        """Wait for tools that were cancelled and took their time to clean up."""
        if self._left_over:
            await asyncio.wait(self._left_over)

    def _create_call(self, call: ToolCall, message_id: int, limits: OutputSettings) -> ToolCallRun:
        fresh, count = call.id, 1
        while fresh in self._used_ids:
            count += 1
            fresh = f"{call.id}-{count}"
        self._used_ids.add(fresh)
        return ToolCallRun(self._services, fresh, call, message_id, limits)

    def _share_limits(self, count: int) -> OutputSettings:
        limits, max_chars = self._services.context.settings.output, self._max_step_chars()
        if max_chars is None:
            return limits
        share = max(max_chars // max(count, 2), 1)
        return OutputSettings(max_chars=min(limits.max_chars, share), max_lines=limits.max_lines)

    async def _run_in_order(self, one: ToolCallRun) -> None:
        if await one.prepare():
            await self._run_tool(one)

    async def _run_in_parallel(self, ones: list[ToolCallRun]) -> None:
        """Questions are asked one after the other; what may run then runs together."""
        ready = [one for one in ones if await one.prepare()]
        places = asyncio.Semaphore(MAX_PARALLEL_CALLS)

        async def run(one: ToolCallRun) -> None:
            async with places:
                await self._run_tool(one)

        async with asyncio.TaskGroup() as group:
            for one in ready:
                group.create_task(run(one))

    async def _run_tool(self, one: ToolCallRun) -> None:
        """A cancelled tool has a moment to clean up; one that takes longer is waited for in `close`."""
        task = asyncio.create_task(one.run())
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
