"""What was typed before, across sessions: one JSON object a line, with the session it was typed in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History

from ollm.system.small_files import read_small_file

MAX_HISTORY_LINES = 2_000
MAX_INPUT_CHARACTERS = 20_000


class ScreenInputHistory(History):
    """Appends each input; a file that cannot be written is no reason to stop."""

    def __init__(self, file: Path, session: Callable[[], str | None]) -> None:
        super().__init__()
        self._file = file
        self._session = session

    def load_history_strings(self) -> Iterable[str]:
        """Newest first, as the toolkit asks for them."""
        try:
            lines = read_small_file(self._file).splitlines()[-MAX_HISTORY_LINES:]
        except OSError:
            return []
        return [text for line in reversed(lines) if (text := _parse_text(line))]

    def store_string(self, string: str) -> None:
        line = json.dumps({"text": string[:MAX_INPUT_CHARACTERS], "session": self._session()}) + "\n"
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(line.encode("utf-8", "surrogatepass"))
        except OSError:
            return


def _parse_text(line: bytes) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    text = found.get("text") if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""
