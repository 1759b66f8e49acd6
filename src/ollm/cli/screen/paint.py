"""Rich to text with escape sequences, for a given width; plain text where colour is not wanted."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.cli.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

Width = Callable[[], int]
THEME = "ansi_dark"
JOINERS = ("\u200c", "\u200d")
_JOINED = re.compile(r"((?<=[^\x00-\x7f\u2000-\u206f])[\u200c\u200d](?=[^\x00-\x7f\u2000-\u206f]))")
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

    def markdown(self, text: str) -> str:
        from ollm.cli.screen.markdown import ChatMarkdown

        painted = self.paint(ChatMarkdown(prose(text), code_theme=THEME, hyperlinks=False))
        return _without_blank_edges(painted)

    def user(self, text: str) -> str:
        from rich.text import Text

        return self.paint(Text("› ", style="bold cyan") + Text(prose(text), style="bold"))

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


def prose(text: str) -> str:
    """Like `clean`, but letters and pictures that are joined stay joined: 👩‍🔬, or a word in Persian. What can be run
    or written never goes through here."""
    return "".join(piece if piece in JOINERS else clean(piece) for piece in _JOINED.split(text))


def _without_blank_edges(painted: str) -> str:
    """One blank line between blocks is enough; tables, lists and code bring their own."""
    lines = painted.split("\n")
    while lines and not _seen(lines[0]):
        del lines[0]
    while lines and not _seen(lines[-1]):
        del lines[-1]
    return "\n".join([*lines, ""])


def _seen(line: str) -> bool:
    return bool(_STYLE.sub("", line).strip())


def clean(text: str) -> str:
    """Without anything that drives a terminal or hides: line ends and tabs stay."""
    if text.isprintable():
        return text
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))
