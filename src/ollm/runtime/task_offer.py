"""Runs the agents that the user names with `@agent-NAME`. Their reports go with the message."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.events import Notice, ToolFinished, ToolOutput, ToolStarted
from ollm.domain.session import TaskReport, TaskRequest
from ollm.domain.tools import ErrorInfo, ToolResult
from ollm.runtime.base import EventStream

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts, TaskStarter

MAX_MENTIONED_AGENTS = 3
_MENTION = re.compile(r"(?:^|(?<=[\s(]))@agent-([a-z0-9][a-z0-9_-]{0,63})", re.IGNORECASE)


async def offer_task(parts: ConversationParts, typed: str) -> str:
    """Return the reports of the agents that the user named, or "" without any."""
    if parts.tasks is None:
        return ""
    tasks = parts.tasks.get()
    names = list(dict.fromkeys(name.lower() for name in _MENTION.findall(typed)))
    for name in names[MAX_MENTIONED_AGENTS:]:
        told = f"@agent-{name} was not asked: a message has at most {MAX_MENTIONED_AGENTS} agents."
        parts.stream.emit(Notice(level="warning", text=told))
    prompt = _MENTION.sub(r"\1", typed).strip()
    requests = [TaskRequest(prompt=prompt, agent=name) for name in names[:MAX_MENTIONED_AGENTS]]
    return "\n\n".join(filter(None, [await _run_task(parts, tasks, request) for request in requests]))


async def _run_task(parts: ConversationParts, tasks: TaskStarter, request: TaskRequest) -> str:
    """Return the report with its origin. A failure is reported, and the turn continues without it."""
    from ollm.tools.task import render_report

    shown = _ShownTask(parts.stream, request)
    try:
        report = await tasks.run(request, shown.add_line)
    except ToolFailure as failure:
        shown.fail("failed", failure.kind, failure.message)
        return ""
    except OllmError as error:
        shown.fail("failed", "Interrupted", str(error))
        return ""
    except asyncio.CancelledError:
        shown.fail("cancelled", "Cancelled", "The turn was cancelled before this task finished.")
        raise
    shown.finish(report)
    return f"[Report of agent {request.agent}:]\n{render_report(report)}"


class _ShownTask:
    """A task as shown to observers, like one that the model called."""

    def __init__(self, stream: EventStream, request: TaskRequest) -> None:
        from ollm.tools.task import Task

        self._stream = stream
        self._id = f"task-{secrets.token_hex(6)}"
        self._lines: list[str] = []
        self._began = time.monotonic()
        args: dict[str, object] = {"prompt": request.prompt, **({"agent": request.agent} if request.agent else {})}
        summary = Task(prompt=request.prompt, agent=request.agent).summary()
        stream.emit(ToolStarted(call_id=self._id, name=Task.name, summary=summary, args=args))

    def add_line(self, line: str) -> None:
        self._lines.append(line)
        self._stream.emit(ToolOutput(call_id=self._id, text=line))

    def fail(self, status: str, kind: str, message: str) -> None:
        error = ErrorInfo(type=kind, message=message)
        self._end(status, ToolResult(llm_content=message, return_display=message, error=error))

    def finish(self, report: TaskReport) -> None:
        from ollm.tools.task import render_display, render_report

        shown = render_display(report, self._lines)
        self._end("ok", ToolResult(llm_content=render_report(report), return_display=shown))

    def _end(self, status: str, result: ToolResult) -> None:
        seconds = time.monotonic() - self._began
        self._stream.emit(
            ToolFinished(call_id=self._id, name="task", status=status, result=result, seconds=round(seconds, 3))
        )
