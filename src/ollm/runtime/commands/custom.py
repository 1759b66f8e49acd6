"""`/NAME` for `.ollm/commands/NAME.md`: a text the person keeps, sent as their message with the arguments put in."""

from __future__ import annotations

import re
from pathlib import Path

MAX_COMMAND_CHARS = 100_000
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_PLACEHOLDER = r"\$(ARGUMENTS|[1-9])"


class CustomCommands:
    """The commands of the home and, when it is trusted, of the workspace, which come first."""

    def __init__(self, directories: tuple[Path, ...]) -> None:
        self._directories = directories

    def list_names(self) -> list[str]:
        found = {file.stem for directory in self._directories for file in _list_files(directory)}
        return sorted(name for name in found if re.fullmatch(_NAME, name))

    def expand(self, name: str, arguments: str) -> str | None:
        """The text to send: `$ARGUMENTS` is all that followed the name, `$1` to `$9` its words. None: there is none."""
        if not re.fullmatch(_NAME, name):
            return None
        for directory in self._directories:
            file = directory / f"{name}.md"
            if file.is_file() and not file.is_symlink():
                return _fill_arguments(
                    file.read_text(encoding="utf-8", errors="replace")[:MAX_COMMAND_CHARS], arguments
                )
        return None


def _list_files(directory: Path) -> list[Path]:
    try:
        return [file for file in directory.iterdir() if file.suffix == ".md" and file.is_file()]
    except OSError:
        return []


def _fill_arguments(text: str, arguments: str) -> str:
    given = arguments.split()

    def value(match: re.Match[str]) -> str:
        which = match[1]
        if which == "ARGUMENTS":
            return arguments
        return given[int(which) - 1] if int(which) <= len(given) else ""

    filled, places = re.subn(_PLACEHOLDER, value, text)
    return filled if places or not arguments else f"{text.rstrip()}\n\n{arguments}"
