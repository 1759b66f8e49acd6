"""Tool calls as an editor shows them: kind, places, changes as old and new text, output, status."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from ollm.domain.errors import ToolFailure
from ollm.domain.events import ToolFinished, ToolStarted
from ollm.domain.messages import ImagePart, JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import FileChange, ToolCategory, ToolResult
from ollm.system.terminal_text import make_printable, strip_controls
from ollm.tools.framework.base import ToolSpec
from ollm.tools.framework.registry import ToolRegistry

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
    """What is known of a call before it runs."""

    kind: ToolKind
    locations: tuple[JsonObject, ...] = ()


class ToolCallViews:
    """Reads calls with the tools of one conversation, in its workspace."""

    def __init__(self, registry: ToolRegistry, workspace: Path) -> None:
        self._registry = registry
        self._workspace = workspace

    @property
    def workspace(self) -> str:
        return str(self._workspace)

    def read_call(self, name: str, arguments: JsonObject) -> CallView:
        spec = self._registry.get(name)
        return CallView(kind=find_kind(name, spec), locations=tuple(self._find_locations(spec, arguments)))

    def summarize(self, name: str, arguments: JsonObject) -> str:
        """What a call does, in a line; its name where that cannot be said."""
        spec = self._registry.get(name)
        try:
            return spec.parse(arguments).summary() if spec else name
        except ToolFailure:
            return name

    def make_location(self, target: str, line: Any = None) -> JsonObject:
        """A place as editors want it: absolute, with a line where one is known."""
        found = {"path": os.path.normpath(self._workspace / target)}
        return {**found, "line": line} if isinstance(line, int) and line > 0 else found

    def render_change(self, change: FileChange) -> JsonObject:
        """A change as an editor compares it: the whole path, the text before and after."""
        before = {} if change.before is None else {"oldText": make_valid(change.before)}
        path = self.make_location(change.path)["path"]
        return {"type": "diff", "path": path, "newText": make_valid(change.after), **before}

    def render_result(self, result: ToolResult, changes: tuple[FileChange, ...] = ()) -> list[JsonObject]:
        """What a call came to: its changes where there are some, else its text, and its pictures."""
        shown = [self.render_change(change) for change in changes or split_diff(result.diff)] if result.ok else []
        text = (result.return_display or result.error.message) if result.error else result.llm_content
        if text and not shown:
            shown.append(render_text(text))
        return [*shown, *(render_image(image) for image in result.images)]

    def render_finish(self, event: ToolFinished, changes: tuple[FileChange, ...]) -> JsonObject:
        """How a call ended; `changes` are what a person was asked about, when they were."""
        return {
            "sessionUpdate": "tool_call_update",
            "toolCallId": event.call_id,
            "status": "completed" if event.status == "ok" else "failed",
            "content": self.render_result(event.result, changes),
            "rawOutput": render_raw_output(event.status, event.result),
        }

    def _find_locations(self, spec: ToolSpec | None, arguments: JsonObject) -> Iterable[JsonObject]:
        if spec is None:
            return []
        try:
            places = spec.parse(arguments).locations()
        except ToolFailure:  # wrong arguments: the call's result says so
            return []
        line = arguments.get("startLine")
        return [self.make_location(place.target, line) for place in places if is_path(place.target)]


def find_kind(name: str, spec: ToolSpec | None) -> ToolKind:
    if name in SEARCH_TOOLS:
        return "search"
    return KIND_BY_CATEGORY.get(spec.category, "other") if spec and spec.category else "other"


def is_path(target: str) -> bool:
    return "://" not in target and "\0" not in target


def render_start(event: ToolStarted, view: CallView, *, running: bool = True) -> JsonObject:
    """A call that begins; one that a person is asked about first is not `running`."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": event.call_id,
        "title": shorten_title(event.summary or event.name),
        "kind": view.kind,
        "status": "in_progress" if running else "pending",
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


def render_image(image: ImagePart) -> JsonObject:
    return {"type": "content", "content": {"type": "image", "data": image.data, "mimeType": image.media_type}}


def split_diff(diff: str) -> list[FileChange]:
    """The hunks of a unified diff of one file, each as the text before and after. Nothing when it has none."""
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
    first = make_printable(text.strip())
    return first if len(first) <= MAX_TITLE_CHARS else f"{first[: MAX_TITLE_CHARS - 1]}…"


def make_valid(text: str) -> str:
    """Text that can be sent: halves of characters, which a model can write, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
