"""Explore a question or do work in a separate conversation; only the report comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.session import TaskReport, TaskRequest
from ollm.domain.text import format_count, format_names
from ollm.domain.tools import Location, ToolResult
from ollm.tools.framework.base import WIDE_WINDOW_TOKENS, SmallForm, Tool, ToolContext

MAX_NAMED_FILES = 12

RunTask = Callable[[TaskRequest, Callable[[str], None]], Awaitable[TaskReport]]


class Task(Tool[RunTask], frozen=True):
    """Explore a question in a conversation of its own, with as many files as it takes; you get only its report. Several
    calls in one answer run side by side."""

    name: ClassVar = "task"
    category: ClassVar = "read"
    reads_only: ClassVar = False  # Some agents change files.
    side_by_side: ClassVar = True
    aliases: ClassVar = {
        "question": "prompt", "description": "prompt", "subagent_type": "agent", "paths": "files",
    }  # fmt: skip
    priority: ClassVar = {"code": 11, "debug": 11, "plan": 12, "assistant": 12}
    min_window: ClassVar = WIDE_WINDOW_TOKENS
    small: ClassVar = SmallForm(description="Have a question explored; you get a report.")

    prompt: Annotated[str, Meta(min_length=1, description="All it needs to know: it sees nothing of this talk.")]
    files: Annotated[tuple[str, ...], Meta(description="Files to begin with.")] = ()
    agent: Annotated[str, Meta(description="An agent of .ollm/agents, by name.")] = ""

    def summary(self) -> str:
        first = self.prompt.strip().split("\n")[0]
        return f"Task{f' for {self.agent}' if self.agent else ''}: {first[:100]}"

    def locations(self) -> list[Location]:
        return [Location(target=path) for path in self.files]

    async def run(self, context: ToolContext, needs: RunTask) -> ToolResult:
        request = TaskRequest(
            prompt=self.prompt,
            files=self.files,
            agent=self.agent,
            call_id=context.call_id or None,
            title=self.summary(),
            side_by_side=context.side_by_side,
        )
        done: list[str] = []

        def emit(line: str) -> None:
            done.append(line)
            context.emit(line)

        report = await needs(request, emit)
        if not report.text:
            raise ToolFailure("Interrupted", report.problem or "The task ended without a report.")
        return ToolResult(llm_content=render_report(report), return_display=render_display(report, done))


def render_display(report: TaskReport, done: Sequence[str]) -> str:
    """Render the outcome, the actions and the report for the person."""
    head = f"report after {format_count(report.steps, 'step')}{f'; {report.problem}' if report.problem else ''}"
    return f"{head}\n{''.join(f'· {line}' for line in done)}{report.text}"


def render_report(report: TaskReport) -> str:
    """Render the report, with the files it is based on below it."""
    pairs = (("looked at", report.files), ("changed", report.changed))
    notes = [f"It {verb} {format_names(files, MAX_NAMED_FILES)}." for verb, files in pairs if files]
    notes.append(report.problem)
    told = " ".join(filter(None, notes))
    return f"{report.text}\n[{told}]" if told else report.text
