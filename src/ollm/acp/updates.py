"""A conversation's events as the updates an editor shows, one session at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from ollm.acp.tool_calls import ToolCallViews, make_valid, render_start, render_text
from ollm.domain.events import (
    AnyEvent,
    Compressed,
    CompressionError,
    ConfirmationRequested,
    ConfirmationResolved,
    ContextUsage,
    LoopDetected,
    LoopWarning,
    Notice,
    PromptTruncated,
    SnapshotError,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from ollm.domain.messages import JsonObject
from ollm.domain.tools import FileChange, Todo
from ollm.system.terminal_text import strip_controls

OUTPUT_INTERVAL_SECONDS = 0.3  # between two updates with the output of a command so far
MAX_OUTPUT_CHARS = 8_000


class UpdateRenderer:
    """Turns events into updates. It remembers what a running call has printed, and what was asked about it."""

    def __init__(
        self,
        views: ToolCallViews,
        may_run: Callable[[ToolStarted], bool] = lambda _: True,
        *,
        terminals: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._views = views
        self._may_run = may_run
        self._terminals = terminals
        self._now = now
        self._kinds: dict[str, str] = {}
        self._output: dict[str, str] = {}
        self._shown_at: dict[str, float] = {}
        self._changes: dict[str, tuple[FileChange, ...]] = {}
        self._asked: dict[str, str] = {}  # calls by the question about them

    def get_kind(self, call_id: str) -> str:
        return self._kinds.get(call_id, "other")

    def render(self, event: AnyEvent) -> list[JsonObject]:
        """The updates that tell an event; none for what an editor has no place for."""
        return self._render_call(event) or self._render_question(event) or render_state(event) or render_remark(event)

    def _render_call(self, event: AnyEvent) -> list[JsonObject]:
        match event:
            case ToolStarted():
                return self._render_start(event)
            case ToolOutput():
                return self._render_output(event)
            case ToolFinished():
                return self._render_finish(event)
            case _:
                return []

    def _render_question(self, event: AnyEvent) -> list[JsonObject]:
        """The session itself asks; what would change is shown with the result too."""
        match event:
            case ConfirmationRequested():
                self._asked[event.correlation_id] = event.details.call_id
                self._changes[event.details.call_id] = event.details.changes
            case ConfirmationResolved():
                call_id = self._asked.pop(event.correlation_id, "")
                if event.outcome == "approved" and call_id in self._kinds:
                    return [make_call_update(call_id, status="in_progress")]
        return []

    def _render_start(self, event: ToolStarted) -> list[JsonObject]:
        view = self._views.read_call(event.name, event.args)
        self._kinds[event.call_id] = view.kind
        started = render_start(event, view, running=self._may_run(event))
        if self._terminals and view.kind == "execute":
            started["content"] = [{"type": "terminal", "terminalId": event.call_id}]
            started["_meta"] = {"terminal_info": {"terminal_id": event.call_id, "cwd": self._views.workspace}}
        return [started]

    def _render_output(self, event: ToolOutput) -> list[JsonObject]:
        if self._shows_terminal(event.call_id):
            output = {"terminal_id": event.call_id, "data": make_valid(event.text).replace("\n", "\r\n")}
            return [make_call_update(event.call_id, _meta={"terminal_output": output})]
        text = (self._output.get(event.call_id, "") + event.text)[-MAX_OUTPUT_CHARS:]
        self._output[event.call_id] = text
        if self._now() - self._shown_at.get(event.call_id, -OUTPUT_INTERVAL_SECONDS) < OUTPUT_INTERVAL_SECONDS:
            return []
        self._shown_at[event.call_id] = self._now()
        return [make_call_update(event.call_id, content=[render_text(text)])]

    def _render_finish(self, event: ToolFinished) -> list[JsonObject]:
        finished = self._views.render_finish(event, self._changes.pop(event.call_id, ()))
        if self._shows_terminal(event.call_id):
            error = event.result.error
            shown = {"type": "terminal", "terminalId": event.call_id}
            finished["content"] = [shown, *([render_text(error.message)] if error else [])]
            ending = {"terminal_id": event.call_id, "exit_code": event.result.exit_code, "signal": None}
            finished["_meta"] = {"terminal_exit": ending}
        for kept in (self._kinds, self._output, self._shown_at):
            kept.pop(event.call_id, None)
        return [finished]

    def _shows_terminal(self, call_id: str) -> bool:
        return self._terminals and self._kinds.get(call_id) == "execute"


def make_call_update(call_id: str, **fields: object) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}


def render_chunk(kind: str, text: str) -> JsonObject:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": strip_controls(text)}}


def render_title(title: str) -> str:
    """A session's title: one line."""
    return " ".join(strip_controls(title).split())


def render_plan(todos: tuple[Todo, ...]) -> JsonObject:
    """The todo list as a plan: the first open one is what is worked on."""
    entries = []
    working = True
    for todo in todos:
        status = "completed" if todo.status == "done" else "in_progress" if working else "pending"
        working = working and status == "completed"
        entries.append({"content": strip_controls(todo.text), "priority": "medium", "status": status})
    return {"sessionUpdate": "plan", "entries": entries}


def render_usage(used: int, window: int) -> JsonObject:
    return {"sessionUpdate": "usage_update", "used": used, "size": window}


def render_state(event: AnyEvent) -> list[JsonObject]:
    """What the model says, plans and has used."""
    match event:
        case TextDelta():
            return [render_chunk("agent_message_chunk", event.text)]
        case ThinkingDelta():
            return [render_chunk("agent_thought_chunk", event.text)]
        case TodosChanged():
            return [render_plan(event.todos)]
        case ContextUsage():
            return [render_usage(event.used, event.window)]
        case _:
            return []


def render_remark(event: AnyEvent) -> list[JsonObject]:
    """What the agent itself has to say: beside the answer, unless it is about a fault."""
    if fault := describe_fault(event):
        return [render_chunk("agent_message_chunk", f"\n\n{fault}\n\n")]
    remark = describe_remark(event)
    return [render_chunk("agent_thought_chunk", f"\n{remark}\n")] if remark else []


def describe_fault(event: AnyEvent) -> str:
    match event:
        case Notice(level="error"):
            return event.text
        case LoopDetected():
            return f"Stopped: the model is looping ({event.details})."
        case _:
            return ""


def describe_remark(event: AnyEvent) -> str:
    text = ""
    match event:
        case Notice():
            text = event.text
        case Compressed():
            counts = f"{event.original_token_count:,} → {event.compressed_token_count:,} tokens"
            text = f"Compacted {counts}; full history kept."
        case CompressionError() | SnapshotError():
            text = event.message
        case LoopWarning():
            text = f"The model may be looping: {event.details}."
        case PromptTruncated():
            text = f"The server read only {event.read_tokens:,} of {event.sent_tokens:,} prompt tokens."
        case _:
            pass
    return text
