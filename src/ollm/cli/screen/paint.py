"""Rich to text with escape sequences, for a given width; plain text where colour is not wanted."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.cli.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

Width = Callable[[], int]
THEME = "ansi_dark"


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

    def markdown(self, text: str) -> str:
        from ollm.cli.screen.markdown import ChatMarkdown

        return self.paint(ChatMarkdown(clean(text), code_theme=THEME, hyperlinks=False))

    def user(self, text: str) -> str:
        from rich.text import Text

        return self.paint(Text("› ", style="bold cyan") + Text(clean(text), style="bold"))

    def dim(self, text: str) -> str:
        from rich.text import Text

        return self.paint(Text(clean(text), style="dim"))

    def aside(self, text: str, style: str = "") -> str:
        from rich.padding import Padding
        from rich.text import Text

        return self.paint(Padding(Text(clean(text), style=style), (0, 0, 0, 2)))

    def diff(self, text: str) -> str:
        from ollm.cli.screen.diffs import diff_view

        return self.paint(diff_view(clean(text), self._width()))


def clean(text: str) -> str:
    """Without anything that drives a terminal or hides: line ends and tabs stay."""
    if text.isprintable():
        return text
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))
