"""What the calls of a turn in fact did, for the person: files with counts of lines, commands with exit codes."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.calls.change_facts import shorten_command

MAX_TOLD = 6  # files, and as many commands


class CallDeeds:
    """One for each turn. Only what went through is counted, whatever the model says of it."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[int, int]] = {}
        self._commands: list[tuple[str, int]] = []

    def add(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        for call, record in zip(calls, records, strict=False):
            result = record.result
            if result is None or record.error is not None:
                continue
            path, command = call.arguments.get("path"), call.arguments.get("command")
            if result.diff and isinstance(path, str):
                added, removed = self._lines.get(path, (0, 0))
                self._lines[path] = added + count_marked(result.diff, "+"), removed + count_marked(result.diff, "-")
            if call.name == "shell" and isinstance(command, str) and result.exit_code is not None:
                self._commands.append((command, result.exit_code))

    def describe(self) -> str:
        """Empty where nothing was changed and no command failed: a command that only looked needs no word."""
        files = [f"{path} (+{added} -{removed})" for path, (added, removed) in self._lines.items()]
        ran = [f"{shorten_command(command)} (exit code {code})" for command, code in self._commands]
        if not files and not any(code for _, code in self._commands):
            return ""
        told = (("Changed", ", ", files), ("Ran", "; ", ran))
        return " ".join(f"{word}: {mark.join(shorten_list(named))}." for word, mark, named in told if named)


def count_marked(diff: str, mark: str) -> int:
    """Lines of a diff with this mark; the names of the files above it are none."""
    return sum(line.startswith(mark) for line in diff.partition("\n@@")[2].splitlines())


def shorten_list(named: list[str]) -> list[str]:
    more = len(named) - MAX_TOLD
    return named if more <= 0 else [*named[:MAX_TOLD], f"{more} more"]
