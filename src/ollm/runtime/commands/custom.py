"""`/NAME` for `.ollm/commands/NAME.md`: a text the person keeps, sent as their message with the arguments put in."""

from __future__ import annotations

import re
from pathlib import Path

from ollm.domain.front_matter import split_front_matter
from ollm.system.small_files import read_small_file

MAX_COMMAND_CHARS = 100_000
MAX_DESCRIPTION_CHARS = 200
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_WORD = r"""(?<!\S)"([^"]*)"(?!\S)|(?<!\S)'([^']*)'(?!\S)|(\S+)"""
_PLACEHOLDER = r"\$(ARGUMENTS|[1-9])"


class CustomCommands:
    """The commands of the home and, when it is trusted, of the workspace, which come first."""

    def __init__(self, directories: tuple[Path, ...]) -> None:
        self._directories = directories

    def list_names(self) -> list[str]:
        found = {file.stem for directory in self._directories for file in _list_files(directory)}
        return sorted(name for name in found if re.fullmatch(_NAME, name))

    def describe(self, name: str) -> str:
        """The `description` of its front matter, else its first line."""
        text = self._read(name) or ""
        fields, body = split_front_matter(text)
        first = next((line.strip("# \t") for line in body.splitlines() if line.strip()), "")
        return (fields.get("description") or first)[:MAX_DESCRIPTION_CHARS]

    def expand(self, name: str, arguments: str) -> str | None:
        """The text to send: `$ARGUMENTS` is all that followed the name, `$1` to `$9` its words, a quoted one whole.

        None: there is no such command.
        """
        text = self._read(name)
        return None if text is None else _fill_arguments(split_front_matter(text)[1], arguments)

    def find(self, name: str) -> Path | None:
        """The file of a command; None: there is no such one."""
        if not re.fullmatch(_NAME, name):
            return None
        files = (directory / f"{name}.md" for directory in self._directories)
        return next((file for file in files if file.is_file() and not file.is_symlink()), None)

    def _read(self, name: str) -> str | None:
        file = self.find(name)
        return read_small_file(file).decode("utf-8", "replace")[:MAX_COMMAND_CHARS] if file else None


def _list_files(directory: Path) -> list[Path]:
    try:
        return [file for file in directory.iterdir() if file.suffix == ".md" and file.is_file()]
    except OSError:
        return []


def split_words(arguments: str) -> list[str]:
    """The words, one in quotes as a whole; an apostrophe inside a word is a character."""
    return [double or single or plain for double, single, plain in re.findall(_WORD, arguments)]


def _fill_arguments(text: str, arguments: str) -> str:
    given = split_words(arguments)

    def fill(match: re.Match[str]) -> str:
        which = match[1]
        if which == "ARGUMENTS":
            return arguments
        return given[int(which) - 1] if int(which) <= len(given) else ""

    filled, places = re.subn(_PLACEHOLDER, fill, text)
    return filled if places or not arguments else f"{text.rstrip()}\n\n{arguments}"
