"""Captures a command's output as it arrives, in bounded memory: the beginning and the end are kept."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_F_SETPIPE_SZ = 1031
_PIPE_BYTES = 1024 * 1024


class HeadAndTail:
    """The first and last half of `limit` characters of a text of any length."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head: list[str] = []
        self._left = self._half
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.characters = 0
        self.lines = 0

    def add(self, text: str) -> None:
        self.characters += len(text)
        self.lines += text.count("\n")
        if self._left:
            first, text = text[: self._left], text[self._left :]
            self._head.append(first)
            self._left -= len(first)
        if not text:
            return
        self._tail.append(text)
        self._tail_length += len(text)
        while self._tail_length - len(self._tail[0]) >= self._half:
            self._tail_length -= len(self._tail.popleft())

    @property
    def omitted_characters(self) -> int:
        """Number of characters in neither the head nor the tail."""
        return max(0, self.characters - 2 * self._half)

    def render_text(self) -> str:
        """Return head and tail, separated by a line with the amount omitted."""
        head, tail = "".join(self._head), "".join(self._tail)[-self._half :]
        if not self.omitted_characters:
            return head + tail
        lines = self.lines - head.count("\n") - tail.count("\n")
        return f"{head}\n[... {self.omitted_characters} characters ({lines} lines) omitted ...]\n{tail}"


class Capture:
    """Reads a pipe or terminal as data arrives and passes the text on; owns and closes the descriptor."""

    def __init__(self, descriptor: int, on_text: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        _enlarge(descriptor)
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def drain(self) -> None:
        """Read the available data without blocking, at most what a pipe can contain."""
        for _ in range(16):
            if self.ended.is_set() or not self._read():
                return

    def close(self) -> None:
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set()

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, 128 * 1024)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # The other end of a terminal was closed.
        text = self._decoder.decode(data, final=not data)
        if text:
            self._on_text(text)
        if not data:
            self.close()
        return bool(data)


def _enlarge(descriptor: int) -> None:
    import fcntl

    with suppress(OSError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
