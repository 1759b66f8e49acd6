"""A program on a pseudo-terminal, read by a thread: type, and wait for what it writes."""

from __future__ import annotations

import os
import pty
import signal
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Self

WHERE, HERE = b"\x1b[6n", b"\x1b[37;1R"


class Terminal:
    """`written` is everything the program wrote so far."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self.written = bytearray()
        self._new = threading.Condition()
        self.began = time.perf_counter()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], list(command), dict(environment))
        ioctl(self._descriptor, TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        threading.Thread(target=self._read, daemon=True).start()

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, wanted: str, start: int = 0, patience: float = 60.0) -> float:
        """Until it was written at or after `start`; the moment it was seen."""
        with self._new:
            found = self._new.wait_for(lambda: wanted.encode() in self.written[start:], patience)
        assert found, f"no {wanted!r} in {bytes(self.written[-2000:])!r}"
        return time.perf_counter()

    def echo(self, letter: str) -> float:
        """Seconds from a key to its letter on the screen."""
        with self._new:
            before = len(self.written)
        begin = time.perf_counter()
        self.type(letter)
        return self.wait_for(letter, before) - begin

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:
                return
            if not data:
                return
            for _ in range(data.count(WHERE)):
                os.write(self._descriptor, HERE)
            with self._new:
                self.written += data
                self._new.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._descriptor)
