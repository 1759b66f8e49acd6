"""Another process that reads directories for us: a walk is half waiting for the system, and Python waits with it."""

from __future__ import annotations

import marshal
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import BinaryIO, cast

from ollm.services.file_discovery import reading
from ollm.services.file_discovery.reading import SIZE_BYTES, Reading
from ollm.system.sandbox.confined import make_helper_environment, start_confined

_MAX_REQUEST_BYTES = 16 * 1024  # of one order: two of them fit into a pipe, so that sending never waits
_MAX_ANSWER_BYTES = 1 << 30
SILENCE_TIMEOUT_SECONDS = 5.0  # seconds after which the other counts as lost
MAX_REQUEST_PATHS = 64


class ReaderProcess:
    """Readings come back in the order in which they were asked for. Any failure is an `OSError` or a `ValueError`."""

    def __init__(self, root: str) -> None:
        """`root` is the tree it may read, wherever that is."""
        self._process = start_confined(_start_reader, [root])
        assert self._process.stdin
        assert self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout

    def send_request(self, paths: Sequence[str]) -> int:
        """Ask for the first of these directories, as many as fit into one order; says how many that are."""
        count = size = 0
        for path in paths[:MAX_REQUEST_PATHS]:
            size += len(os.fsencode(path)) + 16
            if count and size > _MAX_REQUEST_BYTES:
                break
            count += 1
        reading.send_value(cast("BinaryIO", self._orders), list(paths[:count]))
        return count

    def receive_readings(self, *, wait: bool) -> list[Reading] | None:
        """The readings of the oldest order; None while they are not there yet."""
        if not wait and not self._has_data(0):
            return None
        size = int.from_bytes(self._read_bytes(SIZE_BYTES), "big")
        if size > _MAX_ANSWER_BYTES:
            raise ValueError(size)
        return cast("list[Reading]", marshal.loads(self._read_bytes(size)))  # noqa: S302 - from our own child

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._orders.close()
        self._answers.close()

    def _has_data(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], seconds)[0])

    def _read_bytes(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            if not self._has_data(SILENCE_TIMEOUT_SECONDS):
                raise TimeoutError
            part = os.read(self._answers.fileno(), size)
            if not part:
                raise BrokenPipeError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _start_reader() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", reading.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env=make_helper_environment(os.environ),
    )


def has_spare_core() -> bool:
    """Whether a second process would run beside this one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)
