"""Rich to text with escape sequences, for a given width; plain text where colour is not wanted."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.system.terminal_text import clean_lines, clean_prose

if TYPE_CHECKING:
    from rich.console import RenderableType

Width = Callable[[], int]
THEME = "ansi_dark"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Painter:
    """Makes what is printed. `width` is asked each time, so that a resize counts at once."""

    def __init__(self, width: Width, *, colour: bool) -> None:
        self._width = width
        self.colour = colour

    def paint(self, *renderables: RenderableType) -> str:
        from rich.console import Console

        out = io.StringIO()
        console = Console(
            file=out,
            width=max(20, self._width()),
            force_terminal=self.colour,
            color_system="256" if self.colour else None,
            no_color=not self.colour,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for renderable in renderables:
            console.print(renderable)
        return "\n".join(line.rstrip(" ") for line in out.getvalue().split("\n"))

    def paint_markdown(self, text: str) -> str:
        from ollm.cli.screen.markdown import ChatMarkdown

        painted = self.paint(ChatMarkdown(clean_prose(text), code_theme=THEME, hyperlinks=False))
        return _strip_blank_edges(painted)

    def paint_user_message(self, text: str) -> str:
        from rich.text import Text

        return self.paint(Text("› ", style="bold cyan") + Text(clean_prose(text), style="bold"))

    def paint_dim(self, text: str) -> str:
        from rich.text import Text

        return self.paint(Text(clean_lines(text), style="dim"))

    def paint_aside(self, text: str, style: str = "") -> str:
        from rich.padding import Padding
        from rich.text import Text

        return self.paint(Padding(Text(clean_lines(text), style=style), (0, 0, 0, 2)))

    def paint_diff(self, text: str) -> str:
        from ollm.cli.screen.diffs import render_diff

        return self.paint(render_diff(clean_lines(text), self._width()))


def _strip_blank_edges(painted: str) -> str:
    """One blank line between blocks is enough; tables, lists and code bring their own."""
    lines = painted.split("\n")
    while lines and not _is_visible(lines[0]):
        del lines[0]
    while lines and not _is_visible(lines[-1]):
        del lines[-1]
    return "\n".join([*lines, ""])


def _is_visible(line: str) -> bool:
    return bool(_STYLE.sub("", line).strip())
