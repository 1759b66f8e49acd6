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

PATIENCE = 60.0


class DrawnScreen:
    """What was written, as a terminal of 80 columns and 24 rows shows it."""

    def __init__(self, patch: pytest.MonkeyPatch, keys: PipeInput) -> None:
        self.written = io.BytesIO()
        self.keys = keys
        patch.setattr(sys, "stdout", io.TextIOWrapper(self.written, encoding="utf-8", write_through=True))

    def type(self, text: str) -> None:
        self.keys.send_text(text)

    def text(self) -> str:
        """Everything that was drawn, with what has scrolled away."""
        paper = pyte.HistoryScreen(80, 24, history=5000)
        pyte.ByteStream(paper).feed(self.written.getvalue())
        past = ["".join(line[at].data for at in range(80)) for line in paper.history.top]
        return "\n".join(line.rstrip() for line in [*past, *paper.display]).strip("\n")

    async def wait_for(self, *wanted: str, gone: str = "\0") -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(part in self.text() for part in wanted) or gone in self.text():
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
