"""Lists above the input: command options, messages to rewind to, themes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import shorten_line, truncate_cells, wrap_words
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
MAX_TITLE_ROWS = 10
MIN_ABOUT_CELLS = 12
HINT = "↑↓ choose · Enter select · Esc cancel"


class OptionList:
    """A list of options. `take` receives the chosen value; `options` are labels by value; `about` describes some of
    them. `preview` shows a value above it."""

    def __init__(
        self,
        title: str,
        options: Mapping[str, str],
        take: Callable[[str], None],
        *,
        current: str = "",
        about: Mapping[str, str] | None = None,
        hint: str = HINT,
        preview: Callable[[str], StyleAndTextTuples] = lambda _: [],
    ) -> None:
        self.title = title
        self.values = list(options)
        self.labels = [f"{make_printable(label)}{' ✓' * (value == current)}" for value, label in options.items()]
        self.place = self.values.index(current) if current in options else 0
        self.take = take
        self._about = about or {}
        self._hint = hint
        self._preview = preview

    def move(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.values) - 1))

    def render_lines(self, width: int) -> StyleAndTextTuples:
        rows = [row for line in self.title.split("\n") if line.strip() for row in wrap_words(line, width - 1, "  ")]
        rows = [*rows[: MAX_TITLE_ROWS - 1], "  …"] if len(rows) > MAX_TITLE_ROWS else rows
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.values) - MAX_ROWS))
        widest = max(map(get_cwidth, self.labels))
        lines = [*self._preview(self.values[self.place])]
        lines += [("bold", truncate_cells(row, width - 1) + "\n") for row in rows]
        for place in range(len(self.values))[first : first + MAX_ROWS]:
            style, mark = ("class:chosen", "›") if place == self.place else ("", " ")
            word = truncate_cells(f"{mark} {self.labels[place]}", width - 1)
            room = width - 1 - widest - len("›   ")
            about = self._about.get(self.values[place], "")
            lines.append((style, word))
            if about and room >= MIN_ABOUT_CELLS:
                lines.append(("class:hint", " " * (widest + 4 - get_cwidth(word)) + shorten_line(about, room)))
            lines.append(("", "\n"))
        return [*lines, ("class:hint", truncate_cells(f"  {self._hint}", width - 1))]


class OptionDialog:
    """The list that is open, if any."""

    def __init__(self) -> None:
        self.list: OptionList | None = None

    def open(self, found: OptionList) -> None:
        self.list = found
        get_app().invalidate()

    def move(self, steps: int) -> None:
        if self.list:
            self.list.move(steps)

    def choose(self, yes: bool) -> None:
        chosen, self.list = self.list, None
        if chosen and yes:
            chosen.take(chosen.values[chosen.place])
