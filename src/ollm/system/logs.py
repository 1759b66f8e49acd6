"""The log: one JSON object per line in `~/.ollm/logs/ollm.log`, redacted, rotated, never on stdout (D631-645).

Callers write `log = logging.getLogger("ollm.<service>")` and `log.warning("message", extra={"operation": …, "context":
{…}, "action": …})`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ollm.domain.clock import format_stamp
from ollm.system.atomic import lock_directory

Redact = Callable[[str], str]
MAX_LOG_BYTES = 5 * 1024 * 1024
MAX_LOG_FILES = 5
MAX_TEXT_CHARACTERS = 8_000
LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}
SECRET_WORDS = ("key", "secret", "token", "password", "credential", "credentials", "authorization", "cookie")


def start_logging(file: Path, level: str, redact: Redact, *, debug: bool = False) -> Callable[[], None] | None:
    """Send all our records, and the warnings of libraries, to the file; with `debug` also to stderr.

    A process has one log: a new file replaces the previous one. Returns a function that undoes this, or None if this
    file is already the log.
    """
    root, ours = logging.getLogger(), logging.getLogger("ollm")
    standing = [handler for handler in root.handlers if isinstance(handler, LogHandler)]
    if any(earlier.file.path == file for earlier in standing):
        return None
    for earlier in standing:
        root.removeHandler(earlier)
    handlers: list[logging.Handler] = [LogHandler(LogFile(file), redact)]
    if debug:
        handlers.append(DebugHandler(redact))
    for handler in handlers:
        root.addHandler(handler)
    ours.setLevel("DEBUG" if debug else level)

    def stop() -> None:
        for handler in handlers:
            root.removeHandler(handler)
        ours.setLevel(logging.NOTSET)

    return stop


class LogFile:
    """A log file shared by several processes: `name`, then `name.1` (the newest full one) to `name.4`."""

    def __init__(self, path: Path, largest: int = MAX_LOG_BYTES, files: int = MAX_LOG_FILES) -> None:
        self.path = path
        self._largest = largest
        self._files = files

    def append(self, line: bytes) -> None:
        descriptor = self._open_file()
        try:
            os.write(descriptor, line)
            full = os.fstat(descriptor).st_size >= self._largest
        finally:
            os.close(descriptor)
        if full:
            self._rotate()

    def _open_file(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def _rotate(self) -> None:
        """Rename the files in one process; a concurrent one finds a small file and leaves it."""
        with lock_directory(self.path.parent):
            if self.path.stat().st_size < self._largest:
                return
            older = [self.path.with_name(f"{self.path.name}.{number}") for number in range(1, self._files)]
            for before, after in reversed([*pairwise([self.path, *older])]):
                if before.exists():
                    before.replace(after)


class LogHandler(logging.Handler):
    """Handler that writes to the log file. A failure is reported once on stderr and stops nothing."""

    def __init__(self, file: LogFile, redact: Redact) -> None:
        super().__init__()
        self.file = file
        self._redact = redact
        self._complained = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.file.append(format_record(record, self._redact))
        except OSError as error:
            self._complain(f"cannot write the log {self.file.path}: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - what is logged must not break what logs
            self._complain(f"a record could not be logged: {type(error).__name__}")

    def _complain(self, text: str) -> None:
        if not self._complained:
            self._complained = True
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"ollm: {text}\n")


def format_record(record: logging.LogRecord, redact: Redact) -> bytes:
    """Format a record as one line of JSON, with every text redacted and shortened."""
    import json

    def clean(value: object, name: str = "") -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if name.lower().endswith(SECRET_WORDS):
            return "********"
        text, most = redact(str(value)), MAX_TEXT_CHARACTERS
        return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"

    error = record.exc_info[1] if record.exc_info else None
    context: dict[str, Any] = getattr(record, "context", {})
    if error is not None:
        context = {**context, "trace": "".join(traceback.format_exception(error))}
    line = {
        "time": format_stamp(datetime.fromtimestamp(record.created, UTC)),
        "level": LEVELS.get(record.levelname, record.levelname),
        "service": get_service_name(record.name),
        "operation": clean(getattr(record, "operation", None)),
        "message": clean(record.getMessage()),
        "errorType": getattr(record, "errorType", None if error is None else type(error).__name__),
        "context": {name: clean(value, name) for name, value in context.items()},
        "action": clean(getattr(record, "action", None) or None),
    }
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def get_service_name(logger: str) -> str:
    """Return the name after `ollm` or after its package: chat_recording of `ollm.services.chat_recording.x`."""
    parts = logger.split(".")
    return parts[:3][-1] if parts[0] == "ollm" else logger


class DebugHandler(logging.Handler):
    """Handler that prints one redacted line per record to stderr, for --debug."""

    def __init__(self, redact: Redact) -> None:
        super().__init__()
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        operation = getattr(record, "operation", "")
        where = f"{get_service_name(record.name)}{'.' if operation else ''}{operation}"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{record.levelname.lower()} {where}: {self._redact(record.getMessage())}\n")
