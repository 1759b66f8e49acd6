"""What is known at one place of a command line: where it runs, and what its variables hold."""

from __future__ import annotations

from copy import copy
from pathlib import Path

from ollm.policy.shell.model import Directories

_HARMLESS_NAMES = frozenset(
    {"CI", "NO_COLOR", "FORCE_COLOR", "LANG", "TZ", "TERM", "COLUMNS", "LINES", "DEBUG", "NODE_ENV"}
)


def is_harmless_variable(name: str) -> bool:
    """Variables whose setting changes nothing but looks."""
    return name in _HARMLESS_NAMES or name.startswith("LC_")


class ShellScope:
    """What is known at one place of the line."""

    def __init__(self, directories: Directories, home: Path | None, assigned: dict[str, str] | None = None) -> None:
        self.directories = directories
        self.home = home
        self.certain: dict[str, str] = {} if home is None else {"HOME": str(home)}
        self.assigned: dict[str, str] = dict(assigned or {})
        self.piped = False
        self.stdin: str | None = None

    def enter_subshell(self) -> ShellScope:
        """The same, for a subshell: what changes there does not come back."""
        twin = copy(self)
        twin.certain, twin.assigned = dict(self.certain), dict(self.assigned)
        return twin
