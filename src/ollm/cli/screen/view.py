"""The parts of the screen that are painted again and again, made from what the screen knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples

from ollm.cli.options import printable
from ollm.cli.screen.cells import cut, padded
from ollm.cli.screen.status import status_line
from ollm.runtime.base import Status

if TYPE_CHECKING:
    from ollm.cli.screen.screen import ChatScreen

QUEUED = 3


class View:
    """`status` is the newest the conversation gave."""

    def __init__(self, screen: ChatScreen) -> None:
        self.status: Status | None = None
        self._screen = screen
        self._branch = ""

    def read_branch(self) -> None:
        self._branch = git_branch(self._screen.look.workspace)

    def live(self) -> AnyFormattedText:
        size = self._screen.app.output.get_size()
        lines = self._screen.transcript.live.lines(size.columns, max(3, size.rows // 3))
        queued = self._screen.talking.queue[:QUEUED]
        lines += [cut(f"  ↳ queued: {printable(text)}", size.columns - 1) for text in queued]
        return ANSI("\n".join(lines)) if lines else ""

    def question(self) -> StyleAndTextTuples:
        if rewinding := self._screen.rewinding:
            return [*rewinding.lines(self._width())]
        choices = self._screen.questions.choices()
        return [("class:question", choices)] if choices else []

    def footer(self) -> StyleAndTextTuples:
        queued = len(self._screen.talking.queue)
        width = self._width()
        line = status_line(self.status, self._screen.transcript, self._branch, queued, width)
        return [("class:status", padded(line, width - 1))]

    def before(self) -> StyleAndTextTuples:
        return [("class:prompt", "no, because: " if self._screen.questions.refusing else "› ")]

    def _width(self) -> int:
        return self._screen.app.output.get_size().columns


def git_branch(workspace: Path) -> str:
    """The branch that is checked out, read from the file git keeps it in."""
    git = workspace / ".git"
    try:
        if git.is_file():
            git = workspace / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    name = head.removeprefix("ref: refs/heads/")
    return printable(name if name != head else head[:8])[:40]
