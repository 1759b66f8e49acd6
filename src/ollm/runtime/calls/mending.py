"""One file that is mended until a run succeeds: each attempt starts from the file as it was, and is asked for anew.

A small model that sees an attempt of its own writes it again. What it is asked is short: the code, what came and what
should have come.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.providers.base import CallPiece
from ollm.runtime.calls.project_files import ProjectFiles

MAX_TRIES = 8
MAX_SCRIPT_TRIES = 4  # of the shell: what it does besides cannot be foreseen
MAX_DATA_FILES = 2
MAX_DATA_CHARS = 300
DATA = (".json", ".csv", ".ini", ".toml", ".yaml", ".yml", ".txt")
_LACKS_KEY = re.compile(
    r"^(?:E\s+)?(?:\w+\.)?(?:KeyError|IndexError|ValueError|AttributeError|NoSectionError|NoOptionError)\b",
    re.MULTILINE,
)
FIND_BUG = "Now find the bug in {}."


class Mending:
    """Of one turn; open from the first run that failed to the one that succeeds."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._check = self._command = ""  # the file that is run, and how
        self._path = self._part = ""
        self._base = self._said = ""  # the code as every attempt starts from it, and what is wrong with it
        self._reached = (0, 0)
        self._tries = 0

    @property
    def is_open(self) -> bool:
        return bool(self._path)

    @property
    def has_given_up(self) -> bool:
        return self._tries > (MAX_SCRIPT_TRIES if self._check.endswith(".sh") else MAX_TRIES)

    def note_run(self, request: str, command: str, failure: str, names: Collection[str]) -> str:
        """The step after a command; `failure` is what it printed where it failed. Nothing where it shows nothing."""
        from ollm.services.request_reading.failed_checks import find_check

        check = self._check or find_check(request, names)
        if not check or check.rpartition("/")[2] not in command:
            return ""
        if not failure:
            self.close()
            return ""
        if self._tries == 0 and not self.is_open:
            self._check, self._command = check, command
            self._open(request, failure, names)
        elif self.is_open:
            self._judge(request, failure, names)
        return self.ask()

    def keep_part(self, piece: CallPiece) -> CallPiece:
        """Of a block for the file that is mended the function that was asked about: others were not shown."""
        from ollm.providers.text_calls.definitions import find_definitions

        said = piece.arguments if isinstance(piece.arguments, dict) else {}
        if not self._part or said.get("path") != self._path:
            return piece
        parts = find_definitions(str(said.get("content", "")).split("\n"))
        found = [part.text for part in parts if part.name == self._part]
        return CallPiece(piece.name, said | {"content": found[0]}) if len(found) == 1 else piece

    def close(self) -> None:
        """Nothing more is tried: it succeeds, was tried often enough, or somebody said no."""
        self._path = ""

    def note_change(self) -> str:
        """What was changed is tried at once."""
        return f"Now run {self._command}." if self.is_open else ""

    def ask(self) -> str:
        """The code and what is wrong with it; nothing once it was asked often enough."""
        self._tries += self.is_open
        if not self.is_open or self.has_given_up:
            self.close()
            return ""
        self._files.remember_whole(self._path)
        where = f"{self._part} in {self._path}" if self._part else self._path
        shown = f"{where} was:" if self._tries > 1 else f"{where}:"
        return f"{shown}\n```\n{self._base.rstrip()}\n```\n\n{self._said} {FIND_BUG.format(where)}"

    def _open(self, request: str, failure: str, names: Collection[str]) -> None:
        from ollm.services.request_reading.failed_checks import find_mended_file, measure_failure

        path = find_mended_file(request, self._check, failure, names, self._files.read_text)
        said = self._describe(request, failure, names)
        self._part, self._base = self._find_code(path, failure) if path and said else ("", "")
        if self._base:
            self._path, self._said, self._reached = path, said, measure_failure(failure, self._check)

    def _find_code(self, path: str, failure: str) -> tuple[str, str]:
        """The whole of a short file; of a long one the function that the failure points at, with its name."""
        from ollm.services.request_reading.named_parts import aim_at_part, find_named_definition
        from ollm.services.request_reading.primed_request import is_short

        text = self._files.read_text(path) or ""
        if is_short(text):
            return "", text
        aimed = aim_at_part(f"Now mend {path}.", {path: text}, failure)
        name = aimed.removeprefix("Now change ").partition(" in ")[0]
        found = find_named_definition(path, name, {path: text}) if name != aimed else None
        return (name, found.text) if found else ("", "")

    def _describe(self, request: str, failure: str, names: Collection[str]) -> str:
        from ollm.services.request_reading.failed_checks import describe_failure, describe_script_failure

        if self._check.endswith(".sh"):
            return describe_script_failure(self._command, failure, request, names)
        said = describe_failure(failure, request)
        return said + self._show_data(failure, names) if said else ""

    def _show_data(self, failure: str, names: Collection[str]) -> str:
        """What a short file of data holds, where a key or a column of it was not found."""
        if _LACKS_KEY.search(failure) is None:
            return ""
        code = "".join(self._files.read_text(name) or "" for name in names if name.endswith(".py") and name in failure)
        told = [name for name in sorted(names) if name.endswith(DATA) and name.rpartition("/")[2] in code]
        texts = {name: " ".join((self._files.read_text(name) or "").split()) for name in told[:MAX_DATA_FILES]}
        return "".join(f" {name} begins with {text[:MAX_DATA_CHARS]}." for name, text in texts.items() if text)

    def _judge(self, request: str, failure: str, names: Collection[str]) -> None:
        """An attempt that got further is where the next ones start; the others are forgotten."""
        from ollm.services.request_reading.failed_checks import measure_failure

        reached = measure_failure(failure, self._check)
        said = self._describe(request, failure, names)
        if reached <= self._reached or not said:
            return
        self._reached, self._said = reached, said
        part, code = self._find_code(self._path, failure)
        if code:
            self._part, self._base = part, code
