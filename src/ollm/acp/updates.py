"""Rendering of a conversation's events as editor updates, one session at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from ollm.domain.errors import ToolFailure
from ollm.domain.events import (
    ConfirmationRequested,
    ConfirmationResolved,
    ContextUsage,
    Event,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    make_notice,
)
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.text import shorten_line
from ollm.domain.tools import FileChange, Todo, ToolCategory, ToolResult
from ollm.system.terminal_text import make_printable, strip_controls
from ollm.tools.framework.base import ToolRegistry, ToolSpec

ToolKind = Literal["read", "edit", "search", "execute", "think", "fetch", "other"]
KIND_BY_CATEGORY: Mapping[ToolCategory, ToolKind] = {
    "read": "read",
    "notes": "think",
    "write": "edit",
    "web": "fetch",
    "run": "execute",
}
SEARCH_TOOLS = ("glob", "grep", "ls")
MAX_TITLE_CHARS = 200


class CallView(Data, frozen=True):
    kind: ToolKind
    locations: tuple[JsonObject, ...] = ()


class ToolCallViews:
    """Renderer of tool calls, based on the tools of one conversation."""

    def __init__(self, registry: ToolRegistry, workspace: Path) -> None:
        self._registry = registry
        self.workspace = workspace

    def read_call(self, name: str, arguments: JsonObject) -> CallView:
        spec = self._registry.get(name)
        return CallView(kind=find_kind(name, spec), locations=tuple(self._find_locations(spec, arguments)))

    def make_location(self, target: str, line: Any = None) -> JsonObject:
        """Make an absolute location, with a line if one is known."""
        found = {"path": os.path.normpath(self.workspace / target)}
        return {**found, "line": line} if isinstance(line, int) and line > 0 else found

    def render_change(self, change: FileChange) -> JsonObject:
        """Render a change with its absolute path and the text before and after."""
        before = {} if change.before is None else {"oldText": make_valid(change.before)}
        path = self.make_location(change.path)["path"]
        return {"type": "diff", "path": path, "newText": make_valid(change.after), **before}

    def render_result(self, result: ToolResult, changes: tuple[FileChange, ...] = ()) -> list[JsonObject]:
        """Render the result of a call: its changes if there are any, else its text, and its pictures."""
        shown = [self.render_change(change) for change in changes or split_diff(result.diff)] if result.ok else []
        text = (result.return_display or result.error.message) if result.error else result.llm_content
        if text and not shown:
            shown.append(render_text(text))
        images = [{"type": "image", "data": image.data, "mimeType": image.media_type} for image in result.images]
        return [*shown, *({"type": "content", "content": image} for image in images)]

    def _find_locations(self, spec: ToolSpec | None, arguments: JsonObject) -> Iterable[JsonObject]:
        if spec is None:
            return []
        try:
            places = spec.parse(arguments).tool.locations()
        except ToolFailure:  # The call's result reports wrong arguments.
            return []
        line = arguments.get("startLine")
        return [self.make_location(place.target, line) for place in places if is_path(place.target)]


def find_kind(name: str, spec: ToolSpec | None) -> ToolKind:
    if name in SEARCH_TOOLS:
        return "search"
    return KIND_BY_CATEGORY.get(spec.category, "other") if spec and spec.category else "other"


def is_path(target: str) -> bool:
    return "://" not in target and "\0" not in target


def render_start(event: ToolStarted, view: CallView) -> JsonObject:
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": event.call_id,
        "title": shorten_title(event.summary or event.name),
        "kind": view.kind,
        "status": "in_progress",
        "locations": list(view.locations),
        "rawInput": event.args,
    }


def render_raw_output(status: str, result: ToolResult) -> JsonObject:
    error = result.error
    return {
        "status": status,
        **({"exitCode": result.exit_code} if result.exit_code is not None else {}),
        **({"error": {"type": error.type, "message": error.message}} if error else {}),
    }


def render_text(text: str) -> JsonObject:
    return {"type": "content", "content": {"type": "text", "text": strip_controls(text)}}


def split_diff(diff: str) -> list[FileChange]:
    """Split a unified diff of one file into hunks, each as the text before and after."""
    lines = diff.splitlines()
    path = next((line[6:] for line in lines if line.startswith("+++ b/")), "")
    hunks: list[tuple[list[str], list[str]]] = []
    for line in lines:
        if line.startswith("@@"):
            hunks.append(([], []))
        elif hunks:
            old, new = hunks[-1]
            if line[:1] in ("-", " "):
                old.append(line[1:])
            if line[:1] in ("+", " "):
                new.append(line[1:])
    return [FileChange(path=path, before=join_lines(old) or None, after=join_lines(new)) for old, new in hunks if path]


def join_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def shorten_title(text: str) -> str:
    return shorten_line(make_printable(text.strip()), MAX_TITLE_CHARS)


def make_valid(text: str) -> str:
    """Replace lone surrogates, which a model can produce."""
    return text.encode("utf-8", "replace").decode("utf-8")


OUTPUT_INTERVAL_SECONDS = 0.3  # Time between two updates with the output of a running command.
MAX_OUTPUT_CHARS = 8_000


class UpdateRenderer:
    """Renderer of events as updates. Remembers the output of running calls and the questions about them."""

    def __init__(self, views: ToolCallViews, *, terminals: bool) -> None:
        self._views = views
        self._terminals = terminals
        self._kinds: dict[str, str] = {}
        self._output: dict[str, str] = {}
        self._shown_at: dict[str, float] = {}
        self._changes: dict[str, tuple[FileChange, ...]] = {}
        self._calls_by_question: dict[str, str] = {}

    def get_kind(self, call_id: str) -> str:
        return self._kinds.get(call_id, "other")

    def render(self, event: Event) -> list[JsonObject]:
        """Render an event as updates, or return [] if an editor cannot show it."""
        match event:
            case ToolStarted():
                updates = self._render_start(event)
            case ToolOutput():
                updates = self._render_output(event)
            case ToolFinished():
                updates = self._render_finish(event)
            case ConfirmationRequested() | ConfirmationResolved():
                updates = self._render_question(event)
            case TextDelta():
                updates = [render_chunk("agent_message_chunk", event.text)]
            case ThinkingDelta():
                updates = [render_chunk("agent_thought_chunk", event.text)]
            case TodosChanged():
                updates = [render_plan(event.todos)]
            case ContextUsage():
                updates = [render_usage(event.used, event.window)]
            case _:
                updates = render_remark(event)
        return updates

    def _render_question(self, event: Event) -> list[JsonObject]:
        """Show that a call waits for an answer, and remember what it would change, to show it with the result."""
        match event:
            case ConfirmationRequested():
                self._calls_by_question[event.correlation_id] = event.details.call_id
                self._changes[event.details.call_id] = event.details.changes
                if event.details.call_id in self._kinds:
                    return [make_call_update(event.details.call_id, status="pending")]
            case ConfirmationResolved():
                call_id = self._calls_by_question.pop(event.correlation_id, "")
                if event.outcome == "approved" and call_id in self._kinds:
                    return [make_call_update(call_id, status="in_progress")]
        return []

    def _render_start(self, event: ToolStarted) -> list[JsonObject]:
        view = self._views.read_call(event.name, event.args)
        self._kinds[event.call_id] = view.kind
        started = render_start(event, view)
        if self._terminals and view.kind == "execute":
            started["content"] = [{"type": "terminal", "terminalId": event.call_id}]
            started["_meta"] = {"terminal_info": {"terminal_id": event.call_id, "cwd": str(self._views.workspace)}}
        return [started]

    def _render_output(self, event: ToolOutput) -> list[JsonObject]:
        if self._shows_terminal(event.call_id):
            output = {"terminal_id": event.call_id, "data": make_valid(event.text).replace("\n", "\r\n")}
            return [make_call_update(event.call_id, _meta={"terminal_output": output})]
        text = (self._output.get(event.call_id, "") + event.text)[-MAX_OUTPUT_CHARS:]
        self._output[event.call_id] = text
        now = time.monotonic()
        if now - self._shown_at.get(event.call_id, -OUTPUT_INTERVAL_SECONDS) < OUTPUT_INTERVAL_SECONDS:
            return []
        self._shown_at[event.call_id] = now
        return [make_call_update(event.call_id, content=[render_text(text)])]

    def _render_finish(self, event: ToolFinished) -> list[JsonObject]:
        finished = make_call_update(
            event.call_id,
            status="completed" if event.status == "ok" else "failed",
            content=self._views.render_result(event.result, self._changes.pop(event.call_id, ())),
            rawOutput=render_raw_output(event.status, event.result),
        )
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
    """Render a session's title on one line."""
    return " ".join(strip_controls(title).split())


def render_plan(todos: tuple[Todo, ...]) -> JsonObject:
    """Render the todo list as a plan: the first open entry is in progress."""
    entries = []
    working = True
    for todo in todos:
        status = "completed" if todo.status == "done" else "in_progress" if working else "pending"
        working = working and status == "completed"
        entries.append({"content": strip_controls(todo.text), "priority": "medium", "status": status})
    return {"sessionUpdate": "plan", "entries": entries}


def render_usage(used: int, window: int) -> JsonObject:
    return {"sessionUpdate": "usage_update", "used": used, "size": window}


def render_remark(event: Event) -> list[JsonObject]:
    """Render a message of the agent itself: as a thought, or as an answer if it reports a fault."""
    notice = make_notice(event)
    if notice is None:
        return []
    if notice.level == "error":
        return [render_chunk("agent_message_chunk", f"\n\n{notice.text}\n\n")]
    return [render_chunk("agent_thought_chunk", f"\n{notice.text}\n")]
