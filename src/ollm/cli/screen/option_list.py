"""A short list to choose from: a model, a mode, an approval level, a call of an earlier turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.cells import shorten_line, truncate_cells
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
MIN_ABOUT_CELLS = 12
HINT = "↑↓ choose · Enter select · Esc cancel"


class OptionList:
    """`take` gets the chosen word."""

    hint = HINT
    stays_open = False  # after something was chosen
    yields_to_typing = False  # whether letters go to the input line and close it

    def __init__(
        self,
        title: str,
        options: list[str],
        current: str,
        take: Callable[[str], None] = lambda _chosen: None,
        *,
        about: Mapping[str, str] | None = None,
    ) -> None:
        self.title = title
        self.options = options
        self.current = current
        self.place = options.index(current) if current in options else 0
        self._take = take
        self._about = about or {}

    @property
    def chosen(self) -> str:
        return self.options[self.place]

    def take(self) -> None:
        self._take(self.chosen)

    def move(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.options) - 1))

    def render_lines(self, width: int) -> list[tuple[str, str]]:
        """Style and text of each line, ends of line included."""
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.options) - MAX_ROWS))
        lines = [("bold", truncate_cells(f"  {self.title}", width - 1) + "\n")]
        shown = [f"{make_printable(option)}{' ✓' * (option == self.current)}" for option in self.options]
        widest = max(map(get_cwidth, shown))
        for place in range(len(shown))[first : first + MAX_ROWS]:
            style, mark = ("class:chosen", "›") if place == self.place else ("", " ")
            word = truncate_cells(f"{mark} {shown[place]}", width - 1)
            room = width - 1 - widest - len("›   ")
            told = self._about.get(self.options[place], "")
            lines.append((style, word))
            if told and room >= MIN_ABOUT_CELLS:
                lines.append(("class:hint", " " * (widest + 4 - get_cwidth(word)) + shorten_line(told, room)))
            lines.append(("", "\n"))
        return [*lines, ("class:hint", truncate_cells(f"  {self.hint}", width - 1))]
