"""Steps of a turn as data: commands that ran and files that changed, rendered once for the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ollm.domain.struct import Data
from ollm.system.terminal_text import make_printable

MAX_COMMAND_CHARS = 60


class Step(Data, frozen=True):
    """An action of a turn: a command it ran, or a file it changed."""

    kind: Literal["run", "change", "delete"]
    path: str = ""
    command: str = ""
    exit_code: int | None = 0  # None for a command that was stopped
    added: int = 0
    removed: int = 0

    def render(self) -> str:
        path = make_printable(self.path)
        match self.kind:
            case "run":
                end = "stopped" if self.exit_code is None else f"exit code {self.exit_code}"
                return f"{make_printable(shorten_command(self.command))} ({end})"
            case "delete":
                return f"{path} (deleted)"
        return f"{path} (+{self.added} -{self.removed})"


def render_steps(steps: Sequence[Step], limit: int | None = None) -> str:
    """Describe the actual actions for the user: each file once, each command, at most `limit` of either."""
    changed: dict[str, Step] = {}
    for step in steps:
        if step.kind != "run":
            known = changed.get(step.path, Step(kind="change"))
            counts = {"added": known.added + step.added, "removed": known.removed + step.removed}
            changed[step.path] = msgspec.structs.replace(step, **counts)
    ran = [step.render() for step in steps if step.kind == "run"]
    told = (("Changed", ", ", [step.render() for step in changed.values()]), ("Ran", "; ", ran))
    return " ".join(f"{word}: {mark.join(_shorten_list(each, limit))}." for word, mark, each in told if each)


def _shorten_list(told: list[str], limit: int | None) -> list[str]:
    return told if limit is None or len(told) <= limit else [*told[:limit], f"{len(told) - limit} more"]


def compare_file(name: str, before: str | None, after: str | None) -> Step | None:
    """Return the step from one text of a file to another, or None if they are equal."""
    if before == after:
        return None
    if after is None:
        return Step(kind="delete", path=name)
    import difflib

    _, _, *lines = [*difflib.unified_diff((before or "").splitlines(), after.splitlines(), n=0)] or ["", ""]
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    return Step(kind="change", path=name, added=added, removed=removed)


def shorten_command(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= MAX_COMMAND_CHARS else f"{line[: MAX_COMMAND_CHARS - 1]}…"
