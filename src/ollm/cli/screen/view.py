"""The parts of the screen that are painted again and again, made from what the screen knows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text

from ollm.cli.screen.cells import pad_cells, truncate_cells, wrap_choices
from ollm.cli.screen.option_dialog import OptionDialog
from ollm.cli.screen.questions import ConfirmationQueue
from ollm.cli.screen.rewind import RewindDialog
from ollm.cli.screen.status import format_status_line
from ollm.cli.screen.transcript import ContextFill, Transcript
from ollm.runtime.base import Status
from ollm.system.terminal_text import make_printable

MAX_QUEUED_SHOWN = 3


class ScreenView:
    """`status` is the newest the conversation gave; `queue` are the texts that wait for the model."""

    def __init__(
        self,
        transcript: Transcript,
        questions: ConfirmationQueue,
        rewinding: RewindDialog,
        options: OptionDialog,
        queue: Callable[[], list[str]],
    ) -> None:
        self.status: Status | None = None
        self.branch = ""
        self.hint = ""
        self._began = time.monotonic()
        self._transcript = transcript
        self._questions = questions
        self._rewinding = rewinding
        self._options = options
        self._queue = queue
        self._live: tuple[int, StyleAndTextTuples] = (-1, [])

    def render_live(self) -> StyleAndTextTuples:
        """Painted once for each time the screen is, however often it is asked for."""
        counter = get_app().render_counter
        if self._live[0] != counter:
            self._live = (counter, self._render_live_lines())
        return self._live[1]

    def _render_live_lines(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        waiting = self._questions.current is not None
        height = max(3, size.rows // (2 if self._transcript.unfolded else 3))
        lines = [] if waiting else self._transcript.live.render_lines(size.columns, height)
        lines += [
            truncate_cells(f"  ↳ queued: {make_printable(text)}", size.columns - 1)
            for text in self._queue()[:MAX_QUEUED_SHOWN]
        ]
        return merge_style_runs("\n".join(lines))

    def render_question(self) -> StyleAndTextTuples:
        if self._rewinding.list:
            return [*self._rewinding.list.render_lines(get_width())]
        if self._options.list:
            return [*self._options.list.render_lines(get_width())]
        if self.hint:
            return [("class:hint", self.hint)]
        choices = self._questions.format_choices()
        return style_choices(wrap_choices(choices, get_width() - 1, indent="  ")) if choices else []

    def render_footer(self) -> StyleAndTextTuples:
        waited, queued = time.monotonic() - self._began, len(self._queue())
        line = format_status_line(self.status, self._transcript, self.branch, queued, get_width(), waited)
        shown = pad_cells(line, get_width() - 1)
        return style_status_line(shown, self._transcript.fill, self.status.approval if self.status else "")

    def render_prompt(self) -> StyleAndTextTuples:
        asks = "answer: " if self._questions.writing else "reason: "
        return [("class:prompt", asks if self._questions.typing else "› ")]


def style_choices(text: str) -> StyleAndTextTuples:
    """The keys that answer stand out from what they mean."""
    parts = re.split(r"(\[[a-z]\])", text)
    return [("class:key" if number % 2 else "class:question", part) for number, part in enumerate(parts) if part]


def style_status_line(line: str, fill: ContextFill, approval: str) -> StyleAndTextTuples:
    """The line in quiet letters; the bar in the colour of how full it is, an approval that asks less stands out."""
    levels = {"yolo": "class:bold-approval", "accept-edits": "class:approval"}
    styles = {
        "bar": "class:bar-full" if fill.limit and fill.used >= fill.mark else "class:bar",
        "level": levels.get(approval, "class:status"),
    }
    parts: StyleAndTextTuples = []
    place = 0
    for found in re.finditer(r"(?P<bar>█+)" + (rf"|(?<=·)(?P<level>{re.escape(approval)})" if approval else ""), line):
        parts += [("class:status", line[place : found.start()]), (styles[found.lastgroup or "bar"], found[0])]
        place = found.end()
    return [*parts, ("class:status", line[place:])]


def merge_style_runs(text: str) -> StyleAndTextTuples:
    """Text with escape sequences as one fragment for each run of a style: the toolkit makes one of every letter, and
    looks at all of them several times for each time it paints."""
    if "\x1b" not in text:
        return [("", text)] if text else []
    letters = to_formatted_text(ANSI(text))
    return [
        (style, "".join(letter[1] for letter in run)) for style, run in groupby(letters, key=lambda letter: letter[0])
    ]


def get_width() -> int:
    return get_app().output.get_size().columns


def read_git_branch(workspace: Path) -> str:
    """The branch that is checked out, read from the file git keeps it in."""
    git = workspace / ".git"
    try:
        if git.is_file():
            git = workspace / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    name = head.removeprefix("ref: refs/heads/")
    return make_printable(name if name != head else head[:8])[:40]
