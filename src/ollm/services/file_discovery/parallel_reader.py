"""Another process that reads directories for us: a walk is half waiting for the system, and Python waits with it."""

from __future__ import annotations

import marshal
import os
import select
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, NoReturn, cast

from ollm.services.file_discovery import reading
from ollm.services.file_discovery.reading import SIZE_BYTES, Reading
from ollm.system.cores import count_cores
from ollm.system.sandbox.confined import confine_process, make_helper_environment, start_confined

if TYPE_CHECKING:
    import subprocess

_MAX_REQUEST_BYTES = 16 * 1024  # of one order: two of them fit into a pipe, so that sending never waits
_MAX_ANSWER_BYTES = 1 << 30
SILENCE_TIMEOUT_SECONDS = 5.0  # seconds after which the other counts as lost
MAX_REQUEST_PATHS = 64


class ReaderProcess:
    """Readings come back in the order in which they were asked for. Any failure is an `OSError` or a `ValueError`."""

    def __init__(self, root: str) -> None:
        """`root` is the tree it may read, wherever that is."""
        alone = sys.platform == "linux" and threading.active_count() == 1
        self._process = _ForkedReader(root) if alone else start_confined(_start_reader, [root], home=None)
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


class _ForkedReader:
    """This process once more, confined as a helper is: there at once, where a new interpreter needs as long to start
    as half a walk takes. Only where there is a single thread, whose locks nobody else holds."""

    def __init__(self, root: str) -> None:
        requests, answers = os.pipe(), os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(requests[1])
            _serve_and_exit(root, requests[0], answers[1])
        os.close(requests[0])
        os.close(answers[1])
        self.stdin, self.stdout = open(requests[1], "wb", 0), open(answers[0], "rb", 0)  # noqa: PTH123, SIM115

    def kill(self) -> None:
        if self._pid:
            os.kill(self._pid, 9)

    def wait(self) -> None:
        """Only once: after that its process id may belong to another process."""
        if self._pid:
            os.waitpid(self._pid, 0)
            self._pid = 0


def _serve_and_exit(root: str, requests: int, answers: int) -> NoReturn:
    """Serve until there are no more requests, then exit: the forked process never returns to what it was doing."""
    try:
        confine_process([root])
        with open(requests, "rb") as wanted, open(answers, "wb") as found:
            reading.serve_requests(wanted, found)
    finally:
        os._exit(0)


def _start_reader() -> subprocess.Popen[bytes]:
    import subprocess

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
    return count_cores() > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)
