"""Read the hooks of the settings and report every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from ollm.domain.struct import Data, convert_or_describe

HookEvent = Literal[
    "session-start",
    "session-end",
    "before-turn",
    "after-turn",
    "before-tool",
    "after-tool",
    "before-compression",
    "after-compression",
    "notification",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
CLAUDE_EVENT_NAMES: dict[str, HookEvent] = {
    "PreToolUse": "before-tool",
    "PostToolUse": "after-tool",
    "UserPromptSubmit": "before-turn",
    "Stop": "after-turn",
    "SessionStart": "session-start",
    "SessionEnd": "session-end",
    "PreCompact": "before-compression",
    "Notification": "notification",
}
KEYS = {"command", "tools", "required", "timeout", "sandbox"}
SANDBOX_OFF = (False, "off")
DEFAULT_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 600.0


class Hook(Data, frozen=True):
    """A command to run at an event. `tools` filters tool events by name (globs), `matcher` as in Claude Code. A failing
    `required` hook before a tool or a turn stops it. `claude`: written for Claude Code. `own`: in the
    user's own file, so its words open paths in the sandbox. `boxed` is false for one of these that runs outside."""

    event: HookEvent
    command: Annotated[str, Meta(pattern=r"\S")]
    tools: tuple[str, ...] = ()
    required: bool = False
    timeout: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] = DEFAULT_TIMEOUT_SECONDS
    boxed: bool = True
    own: bool = False
    matcher: str = ""
    claude: bool = False

    def applies_to(self, tool: str | None) -> bool:
        return tool is None or not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


EXPECTED = {
    "command": "text",
    "tools": "a list of names",
    "timeout": f"seconds, at most {MAX_TIMEOUT_SECONDS:g}",
}


def read_hooks(
    configured: Mapping[str, Any], own: Mapping[str, Any] | None = None
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Read the hooks; returns them and the mistakes. `own` are the hooks of the user's own file: only these may leave
    the sandbox."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for name, entries in configured.items():
        event = name if name in EVENTS else CLAUDE_EVENT_NAMES.get(name)
        if event is None:
            problems.append(f"hooks.{name}: unknown event; available: {', '.join(EVENTS)}, and those of Claude Code")
            continue
        for place, entry in enumerate(_list_entries(entries)):
            mine = own is None or entry in _list_entries(own.get(name))
            for found in read_entry(event, entry, claude=event != name):
                if isinstance(found, Hook):
                    hooks.append(
                        msgspec.structs.replace(found, own=mine and own is not None, boxed=found.boxed or not mine)
                    )
                else:
                    problems.append(f"hooks.{name}[{place}]: {found}")
    return tuple(hooks), tuple(problems)


def read_entry(event: HookEvent, entry: Any, *, claude: bool) -> list[Hook | str]:
    """Read the hooks of an entry: ours, or Claude Code's `{matcher, hooks: [{type, command, timeout}]}`."""
    if not isinstance(entry, Mapping) or "hooks" not in entry:
        return [read_hook(event, entry, claude=claude)]
    matcher, listed = entry.get("matcher") or "", entry["hooks"]
    if not isinstance(matcher, str) or not isinstance(listed, list | tuple):
        return ["expected a matcher and a list of hooks"]
    return [_read_claude_hook(event, matcher, each) for each in listed]


def _read_claude_hook(event: HookEvent, matcher: str, entry: Any) -> Hook | str:
    if not isinstance(entry, Mapping) or entry.get("type", "command") != "command":
        return "only hooks of type command are run"
    return read_hook(event, {key: value for key, value in entry.items() if key in KEYS}, matcher, claude=True)


def _list_entries(entries: Any) -> list[Any]:
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def read_hook(event: HookEvent, entry: Any, matcher: str = "", *, claude: bool) -> Hook | str:
    if isinstance(entry, str):
        entry = {"command": entry}
    if not isinstance(entry, Mapping):
        return "expected a command, or a mapping with one"
    if unknown := sorted(set(entry) - KEYS):
        return f"unknown key {unknown[0]}; available: {', '.join(sorted(KEYS))}"
    if entry.get("sandbox") not in (None, True, "on", *SANDBOX_OFF):
        return "sandbox: expected off"
    tools = entry.get("tools", ())
    own = {
        "event": event,
        "tools": (tools,) if isinstance(tools, str) else tools,
        "required": entry.get("required") is True,
        "boxed": entry.get("sandbox") not in SANDBOX_OFF,
        "matcher": matcher,
        "claude": claude,
    }
    return convert_or_describe({"command": None, **entry, **own}, Hook, EXPECTED)
