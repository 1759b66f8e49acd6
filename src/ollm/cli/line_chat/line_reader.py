"""Lines from a terminal that can do no more, read beside everything else that goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class LineReader:
    """What was typed and not read yet; an end is in it as None."""

    def __init__(self) -> None:
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()

    @contextmanager
    def start_reading(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._read)
        loop.add_signal_handler(signal.SIGINT, self.put, None)
        try:
            yield
        finally:
            loop.remove_reader(0)

    async def ask(self, prompt: str) -> str | None:
        """A line; one that ends with a backslash continues with the next. None when there are no more."""
        said: list[str] = []
        while True:
            sys.stdout.write(prompt if not said else "| ")
            sys.stdout.flush()
            line = await self._typed.get()
            if line is None or not line.endswith("\\"):
                return line if not said else "\n".join([*said, line or ""])
            said.append(line[:-1])

    def put(self, line: str | None) -> None:
        """As if it had been typed."""
        self._typed.put_nowait(line)

    def _read(self) -> None:
        """A terminal gives a whole line at a time."""
        data = os.read(0, 65536)
        for line in data.decode("utf-8", "replace").splitlines() if data else [None]:
            self._typed.put_nowait(line)
