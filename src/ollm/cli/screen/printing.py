"""What is printed above the input: gathered, and written at most ten times a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable

from prompt_toolkit.application import in_terminal

FRAME = 0.1


class Printing:
    """`alive` says whether something on the screen moves by itself; when nothing does, nothing runs."""

    def __init__(self, alive: Callable[[], bool], repaint: Callable[[], None]) -> None:
        self._alive = alive
        self._repaint = repaint
        self._waiting: list[str] = []
        self._wake = asyncio.Event()

    def add(self, text: str) -> None:
        self._waiting.append(text)
        self._wake.set()

    def wake(self) -> None:
        """Something moves from now on."""
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            if not self._alive():
                self._wake.clear()
            if self._waiting:
                async with in_terminal():
                    self.flush()
            else:
                self._repaint()
            await asyncio.sleep(FRAME)

    def flush(self) -> None:
        text, self._waiting = "".join(self._waiting), []
        with contextlib.suppress(OSError):
            sys.stdout.write(text)
            sys.stdout.flush()
