"""The parts of the screen that are repainted often, built from the screen's state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.utils import get_cwidth

from ollm import __version__
from ollm.cli.screen.cells import join_fitting, pad_cells, truncate_cells
from ollm.cli.screen.option_dialog import OptionDialog
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.questions import ConfirmationQueue
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import ContextUsage
from ollm.providers.base import name_model
from ollm.runtime.base import Status
from ollm.runtime.commands.help_text import shorten_home
from ollm.system.path_names import follow_dot_git
from ollm.system.terminal_text import make_printable

BAR_CELLS = 10
NARROW_BAR_CELLS = 5
ALWAYS_SHOWN_PARTS = 3  # The first parts are cut rather than left out.
WIDE_COLUMNS = 60  # Narrower lines do not name the server.
MIN_TITLE_CELLS = 12  # A shorter title tells too little.


def format_status_line(
    status: Status | None,
    transcript: Transcript,
    branch: str,
    queued: int,
    width: int,
    waited: tuple[str, float] = ("connecting", 0.0),
) -> str:
    """Format as many parts as fit, most important first. Without a status, show what it `waited` for, and how long."""
    if status is None:
        seconds = f" {waited[1]:.0f} s" if waited[1] >= 1 else ""
        return f" {waited[0]}…{seconds}" + (f" · {queued} queued" if queued else "")
    fill = transcript.fill
    parts = [f"{queued} queued"] if queued else []
    is_wide = width >= WIDE_COLUMNS
    bar = format_bar(fill.used, fill.limit, fill.fixed + fill.trigger, BAR_CELLS if is_wide else NARROW_BAR_CELLS)
    model = make_printable(name_model(status.model))
    parts += [
        f"{bar} {100 * fill.used // fill.limit}%" if fill.limit > 0 else f"{bar} ",
        f"{status.mode}·{status.approval}",
        f"{model} @ {format_server(status)}" if is_wide else model,
    ]
    parts += [f"sandbox {status.sandbox}"] if status.sandbox else []
    if fill.reused_share is not None:
        parts.append(f"cache {fill.reused_share:.0%}")
    if 0 < fill.limit <= 100 * fill.thinking:
        parts.append(f"thinking {fill.thinking / fill.limit:.0%}")
    if transcript.live.speed.value:
        parts.append(f"{transcript.live.speed.value:.0f} tok/s")
    if transcript.todos:
        done = sum(todo.status == "done" for todo in transcript.todos)
        parts.append(f"todo {done}/{len(transcript.todos)}")
    line = join_fitting([f" {parts[0]}", *parts[1:]], width - 1, ALWAYS_SHOWN_PARTS)
    return fill_line(line, f"⎇ {branch}" if branch else "", make_printable(status.title), width)


def format_server(status: Status) -> str:
    return urlsplit(status.base_url).netloc.rpartition("@")[2] or status.provider


def fill_line(line: str, branch: str, title: str, width: int) -> str:
    free_cells = width - 4 - get_cwidth(line)
    if branch and get_cwidth(branch) > free_cells:
        return line
    room = free_cells - (get_cwidth(branch) + 3 if branch else 0)
    if title and get_cwidth(title) > room:
        title = f"{truncate_cells(title, room - 1)}…" if room >= MIN_TITLE_CELLS else ""
    end = " · ".join(part for part in (title, branch) if part)
    return f"{line}{' ' * (width - 2 - get_cwidth(line) - get_cwidth(end))}{end} " if end else line


def format_bar(used: int, limit: int, starts: int, width: int = BAR_CELLS) -> str:
    """Render the fill as a bar, with a mark at the start of compaction."""
    if limit <= 0:
        return ""
    filled = min(width, round(width * used / limit))
    mark = min(width - 1, round(width * starts / limit))
    cells = ["█" if place < filled else "░" for place in range(width)]
    if cells[mark] == "░":
        cells[mark] = "┊"
    return "".join(cells)


MAX_QUEUED_SHOWN = 3


class ScreenView:
    """Repainted parts of the screen. `status` is the conversation's latest; `queue` holds waiting texts."""

    def __init__(
        self,
        transcript: Transcript,
        questions: ConfirmationQueue,
        options: OptionDialog,
        queue: Callable[[], list[str]],
    ) -> None:
        self.status: Status | None = None
        self.branch = ""
        self.hint = ""
        self._doing, self._began = "connecting", time.monotonic()
        self._transcript = transcript
        self._questions = questions
        self._options = options
        self._queue = queue
        self._live: tuple[int, StyleAndTextTuples] = (-1, [])

    def note_wait(self, doing: str) -> None:
        self._doing, self._began = make_printable(doing), time.monotonic()

    def render_live(self) -> StyleAndTextTuples:
        """Render the live area, once per repaint of the screen."""
        counter = get_app().render_counter
        if self._live[0] != counter:
            self._live = (counter, self._render_live_lines())
        return self._live[1]

    def _render_live_lines(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        waiting = self._questions.current is not None
        height = max(3, size.rows // (2 if self._transcript.live.unfolded else 3))
        lines = [] if waiting else self._transcript.live.render_lines(size.columns, height)
        lines += [
            truncate_cells(f"  ↳ queued: {make_printable(text)}", size.columns - 1)
            for text in self._queue()[:MAX_QUEUED_SHOWN]
        ]
        return merge_style_runs("\n".join(lines))

    def render_question(self) -> StyleAndTextTuples:
        if self._options.list:
            return [*self._options.list.render_lines(get_width())]
        if self.hint:
            return [("class:hint", self.hint)]
        return [*self._questions.render_lines(get_width() - 1, has_text=bool(get_app().current_buffer.text))]

    def render_footer(self) -> StyleAndTextTuples:
        waited, queued = (self._doing, time.monotonic() - self._began), len(self._queue())
        line = format_status_line(self.status, self._transcript, self.branch, queued, get_width(), waited)
        shown = pad_cells(line, get_width() - 1)
        return style_status_line(shown, self._transcript.fill, self.status.approval if self.status else "")

    def render_prompt(self) -> StyleAndTextTuples:
        return [("class:prompt", f"{self._questions.typing}: " if self._questions.typing else "› ")]


def style_status_line(line: str, fill: ContextUsage, approval: str) -> StyleAndTextTuples:
    """Style the status line: dim text, a bar coloured by its fill, and permissive approval levels highlighted."""
    levels = {"yolo": "class:bold-approval", "accept-edits": "class:approval"}
    styles = {
        "bar": "class:bar-full" if fill.limit and fill.used >= fill.fixed + fill.trigger else "class:bar",
        "level": levels.get(approval, "class:status"),
    }
    parts: StyleAndTextTuples = []
    place = 0
    for found in re.finditer(r"(?P<bar>█+)" + (rf"|(?<=·)(?P<level>{re.escape(approval)})" if approval else ""), line):
        parts += [("class:status", line[place : found.start()]), (styles[found.lastgroup or "bar"], found[0])]
        place = found.end()
    return [*parts, ("class:status", line[place:])]


def merge_style_runs(text: str) -> StyleAndTextTuples:
    """Convert text with escape sequences to one fragment per style run. The toolkit makes one per letter, and scans
    them all several times per repaint."""
    if "\x1b" not in text:
        return [("", text)] if text else []
    letters = to_formatted_text(ANSI(text))
    return [
        (style, "".join(letter[1] for letter in run)) for style, run in groupby(letters, key=lambda letter: letter[0])
    ]


def get_width() -> int:
    return get_app().output.get_size().columns


def read_git_branch(workspace: Path) -> str:
    git, _ = follow_dot_git(str(workspace / ".git"))
    try:
        head = Path(git, "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    name = head.removeprefix("ref: refs/heads/")
    return make_printable(name if name != head else head[:8])[:40]


TIPS = ("/help for commands", "@ attaches a file", "! runs a shell command")


def render_header(status: Status, branch: str, painter: Painter) -> str:
    model = (make_printable(name_model(status.model)), f"{status.window:,}-token context", format_server(status))
    place = (make_printable(shorten_home(status.workspace)), *([branch] if branch else []))
    return painter.paint_header(f"ollm {__version__}", [model, place, TIPS])
