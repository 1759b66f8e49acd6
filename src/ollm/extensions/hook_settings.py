"""Hooks as people write them in the settings, read into data with every mistake told."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import msgspec

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
KEYS = {"command", "tools", "required", "timeout", "sandbox"}
SANDBOX_OFF = (False, "off")
DEFAULT_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 600.0


class Hook(Data, frozen=True):
    """A command to run at an event. `tools` narrows tool events by name (globs); a `required` hook before a tool
    stops the call when it fails; `boxed` is false for one that the user's own file lets run outside the sandbox."""

    event: HookEvent
    command: str
    tools: tuple[str, ...] = ()
    required: bool = False
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    boxed: bool = True

    def applies_to(self, tool: str | None) -> bool:
        return tool is None or not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


def read_hooks(
    configured: Mapping[str, Any], own: Mapping[str, Any] | None = None
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks that can be read, and what is wrong with the others. `own` are those of the user's own file: only these
    may leave the sandbox."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for name, entries in configured.items():
        if name not in EVENTS:
            problems.append(f"hooks.{name}: unknown event; available: {', '.join(EVENTS)}")
            continue
        for place, entry in enumerate(entries if isinstance(entries, list | tuple) else [entries]):
            found = read_hook(name, entry)
            if isinstance(found, Hook):
                mine = own is None or entry in _list_entries(own.get(name))
                hooks.append(found if mine or found.boxed else msgspec.structs.replace(found, boxed=True))
            else:
                problems.append(f"hooks.{name}[{place}]: {found}")
    return tuple(hooks), tuple(problems)


def _list_entries(entries: Any) -> list[Any]:
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def read_hook(event: HookEvent, entry: Any) -> Hook | str:  # noqa: PLR0911 - one line a rule
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
    if entry.get("sandbox") not in (None, True, "on", *SANDBOX_OFF):
        return "sandbox: expected off"
    return Hook(
        event=event,
        command=command,
        tools=tuple(tools),
        required=entry.get("required") is True,
        timeout=float(timeout),
        boxed=entry.get("sandbox") not in SANDBOX_OFF,
    )
