"""Hooks as people write them in the settings, read into data with every mistake told."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from ollm.domain.struct import Data

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
KEYS = {"command", "tools", "required", "timeout"}
DEFAULT_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 600.0


class Hook(Data, frozen=True):
    """A command to run at an event. `tools` narrows tool events by name (globs); a `required` hook before a tool
    stops the call when it fails."""

    event: HookEvent
    command: str
    tools: tuple[str, ...] = ()
    required: bool = False
    timeout: float = DEFAULT_TIMEOUT_SECONDS

    def applies_to(self, tool: str | None) -> bool:
        return tool is None or not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


def read_hooks(configured: Mapping[str, Any]) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks that can be read, and what is wrong with the others."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for name, entries in configured.items():
        if name not in EVENTS:
            problems.append(f"hooks.{name}: unknown event; available: {', '.join(EVENTS)}")
            continue
        for place, entry in enumerate(entries if isinstance(entries, list | tuple) else [entries]):
            found = read_hook(name, entry)
            if isinstance(found, Hook):
                hooks.append(found)
            else:
                problems.append(f"hooks.{name}[{place}]: {found}")
    return tuple(hooks), tuple(problems)


def read_hook(event: HookEvent, entry: Any) -> Hook | str:
    if isinstance(entry, str):
        entry = {"command": entry}
    if not isinstance(entry, Mapping):
        return "expected a command, or a mapping with one"
    if unknown := sorted(set(entry) - KEYS):
        return f"unknown key {unknown[0]}; available: {', '.join(sorted(KEYS))}"
    command, tools, timeout = (
        entry.get("command"),
        entry.get("tools", ()),
        entry.get("timeout", DEFAULT_TIMEOUT_SECONDS),
    )
    if not isinstance(command, str) or not command.strip():
        return "command: expected text"
    tools = (tools,) if isinstance(tools, str) else tools
    if not isinstance(tools, list | tuple) or not all(isinstance(name, str) for name in tools):
        return "tools: expected a list of names"
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout <= MAX_TIMEOUT_SECONDS:
        return f"timeout: expected seconds, at most {MAX_TIMEOUT_SECONDS:g}"
    return Hook(
        event=event, command=command, tools=tuple(tools), required=entry.get("required") is True, timeout=float(timeout)
    )
