"""Records on disk of the state before sandboxed commands: for the check after a crash, and for other sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ollm.domain.errors import StartError
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.locks import get_process_start
from ollm.system.sandbox.names import list_names

RUNNING, RESTING = ".json", ".idle"  # while commands run, and between them
MAX_TRIES = 20


class Record:
    """The record of one watch, in a folder that all sessions share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        name = folder / f"{os.getpid()}-{id(self):x}"
        self._running, self._resting = f"{name}{RUNNING}", f"{name}{RESTING}"
        self._written: dict[str, Any] = {}

    def write(self, state: dict[str, Any]) -> None:
        """Write and sync the state before a command, if it has changed."""
        if state == self._written:
            with suppress(FileNotFoundError):
                os.rename(self._resting, self._running)
            return
        process = [os.getpid(), get_process_start(os.getpid())]
        text = json.dumps({**state, "process": process})
        for _ in range(MAX_TRIES):
            make_private_directory(self._folder)
            with suppress(FileNotFoundError):  # another session has just removed the folder, which was empty
                replace_file(Path(self._running), text.encode())
                self._written = state
                return
        raise StartError(f"{self._folder} is removed again and again", "files")

    def rest(self) -> None:
        """Note that no command runs any more, and that everything is checked."""
        with suppress(FileNotFoundError):
            os.rename(self._running, self._resting)

    def remove(self) -> None:
        for file in (self._running, self._resting) if self._written else ():
            with suppress(FileNotFoundError):
                os.unlink(file)
        self._written = {}
        with suppress(OSError):
            self._folder.rmdir()

    def read_others(self) -> Iterator[dict[str, Any]]:
        """Read the records of other sessions whose commands run now."""
        for name in list_names(str(self._folder)):
            file = os.path.join(self._folder, name)
            if name.endswith(RUNNING) and file != self._running:
                with suppress(OSError, ValueError, KeyError, TypeError):
                    record = json.loads(Path(file).read_bytes())
                    if is_alive(record):
                        yield record


def read_left_over(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Read the records of agents that were killed. Those whose commands had ended are removed, and so are damaged ones:
    there is nothing to compare with. A file system with a journal keeps the order of names after a power cut too."""
    for file in sorted(folder / name for name in list_names(str(folder)) if name.endswith((RUNNING, RESTING))):
        with suppress(FileNotFoundError):
            try:
                record = json.loads(file.read_bytes())
                if is_alive(record):
                    continue
                if file.suffix == RUNNING:
                    yield file, record
                    continue
            except (ValueError, KeyError, TypeError):
                pass
            file.unlink()


def is_alive(record: dict[str, Any]) -> bool:
    """Return True if the process that wrote a record is still there."""
    process, started = record["process"]
    return bool(started) and get_process_start(process) == started
