"""A short list to choose one word from: a model, a mode, an approval level."""

from __future__ import annotations

from ollm.cli.screen.cells import truncate_cells
from ollm.system.terminal_text import make_printable

MAX_ROWS = 8
HINT = "↑ ↓ choose · Enter select · Esc cancel"


class OptionList:
    """`name` is the command that takes the chosen word."""

    def __init__(self, name: str, options: list[str], current: str) -> None:
        self.name = name
        self.options = options
        self.current = current
        self.place = options.index(current) if current in options else 0

    @property
    def chosen(self) -> str:
        return self.options[self.place]

    def move(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.options) - 1))

    def render_lines(self, width: int) -> list[tuple[str, str]]:
        """Style and text of each line, ends of line included."""
        first = max(0, min(self.place - MAX_ROWS // 2, len(self.options) - MAX_ROWS))
        lines = [("bold", f"Choose the {self.name}\n")]
        for place, option in list(enumerate(self.options))[first : first + MAX_ROWS]:
            style = "class:chosen" if place == self.place else ""
            mark = " ✓" if option == self.current else ""
            lines.append((style, truncate_cells(f" {make_printable(option)}{mark} ", width - 1) + "\n"))
        return [*lines, ("class:hint", HINT)]
