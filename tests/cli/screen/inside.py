"""The chat screen in this process: keys go in through a pipe, and what it draws is read from a terminal of its own."""

import asyncio
import io
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyte
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input

from tests.cli.terminal import Paper, render_line

PATIENCE = 60.0


class DrawnScreen:
    """What was written, as a terminal of 80 columns and 24 rows shows it."""

    def __init__(self, patch: pytest.MonkeyPatch, keys: PipeInput) -> None:
        self.written = io.BytesIO()
        self.keys = keys
        self._paper = Paper(80, 24, lambda _data: None)
        self._stream = pyte.ByteStream(self._paper)
        self._fed = 0
        patch.setattr(sys, "stdout", io.TextIOWrapper(self.written, encoding="utf-8", write_through=True))

    def type(self, text: str) -> None:
        self.keys.send_text(text)

    def text(self) -> str:
        """Everything that was drawn, with what has scrolled away."""
        new = self.written.getbuffer()[self._fed :].tobytes()
        self._fed += len(new)
        self._stream.feed(new)
        past = [render_line(line, 80) for line in self._paper.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self._paper.display]).strip("\n")

    def _shows(self, wanted: tuple[str, ...], gone: str) -> bool:
        text = self.text()
        return all(part in text for part in wanted) and gone not in text

    async def wait_for(self, *wanted: str, gone: str = "\0") -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._shows(wanted, gone):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"waited for {wanted}, saw:\n{self.text()}") from None


@asynccontextmanager
async def drawn_screen(patch: pytest.MonkeyPatch) -> AsyncIterator[DrawnScreen]:
    with create_pipe_input() as keys, create_app_session(input=keys):
        yield DrawnScreen(patch, keys)


def point_at(patch: pytest.MonkeyPatch, directory: Path, server: Any) -> Path:
    """A workspace whose conversations ask this server; its path."""
    workspace = directory / "project"
    workspace.mkdir()
    for name, value in {
        "OLLM_HOME": str(directory / "home"),
        "OLLM_BASE_URL": server.base_url,
        "OLLM_PROVIDER": "openai",
        "OLLM_MODEL": "scripted",
    }.items():
        patch.setenv(name, value)
    return workspace
