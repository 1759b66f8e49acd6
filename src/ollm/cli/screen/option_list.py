"""A short list to choose from: a model, a mode, an approval level, a call of an earlier turn."""

from __future__ import annotations

from collections.abc import Callable

from ollm.cli.screen.cells import truncate_cells
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
HINT = "↑ ↓ choose · Enter select · Esc cancel"


class OptionList:
    """`take` gets the chosen word."""

    hint = HINT
    stays_open = False  # after something was chosen
    yields_to_typing = False  # whether letters go to the input line and close it

    def __init__(
        self, title: str, options: list[str], current: str, take: Callable[[str], None] = lambda _chosen: None
    ) -> None:
        self.title = title
        self.options = options
        self.current = current
        self.place = options.index(current) if current in options else 0
        self._take = take

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
        lines = [("bold", truncate_cells(self.title, width - 1) + "\n")]
        for place, option in list(enumerate(self.options))[first : first + MAX_ROWS]:
            style = "class:chosen" if place == self.place else ""
            mark = " ✓" if option == self.current else ""
            lines.append((style, truncate_cells(f" {make_printable(option)}{mark} ", width - 1) + "\n"))
        return [*lines, ("class:hint", truncate_cells(self.hint, width - 1))]
