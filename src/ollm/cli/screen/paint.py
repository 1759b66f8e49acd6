"""Rendering of Rich objects as text of a given width, with escape sequences if colour is wanted."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable

from pygments.token import string_to_tokentype
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.text import Text
from rich.theme import Theme

from ollm.cli.screen.cells import join_fitting, shorten_line
from ollm.cli.screen.diff_view import DiffView
from ollm.cli.screen.markdown import ChatMarkdown
from ollm.cli.screen.themes import ScreenTheme
from ollm.system.terminal_text import clean_lines, clean_prose

Width = Callable[[], int]
GUTTER = "  "
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Painter:
    """Painter of terminal text. `width` is read each time, so that a resize applies at once."""

    def __init__(self, width: Width, theme: ScreenTheme) -> None:
        self._width = width
        self.set_theme(theme)

    def set_theme(self, theme: ScreenTheme) -> None:
        self.theme = theme
        self._code = (
            theme.code
            if isinstance(theme.code, str)
            else ANSISyntaxTheme({string_to_tokentype(f"Token.{n}"): Style(color=ink) for n, ink in theme.code.items()})
        )

    def paint(self, *renderables: RenderableType, indent: int = 0, strips: bool = True) -> str:
        out = io.StringIO()
        console = Console(
            file=out,
            width=max(20, self._width() - indent),
            force_terminal=self.theme.colour,
            color_system=None if not self.theme.colour else "truecolor" if self.theme.true_colour else "standard",
            no_color=not self.theme.colour,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            theme=Theme(self.theme.styles),
        )
        for renderable in renderables:
            console.print(renderable)
        return "\n".join(line.rstrip(" ") for line in out.getvalue().split("\n")) if strips else out.getvalue()

    def paint_markdown(self, text: str, indent: int = 0) -> str:
        markdown = ChatMarkdown(clean_prose(text, tabs="\t"), code_theme=self._code, hyperlinks=False)
        return _strip_blank_edges(self.paint(markdown, indent=indent))

    def paint_answer(self, text: str, *, first: bool) -> str:
        """Paint the model's Markdown with a gutter: a mark where a message begins, blanks below it."""
        lines = self.paint_markdown(text, indent=len(GUTTER)).split("\n")
        mark = self.paint_mark("● ", "cyan") if first else GUTTER
        return "\n".join(
            ((mark if number == 0 else GUTTER) + line) if line else "" for number, line in enumerate(lines)
        )

    def paint_header(self, title: str, lines: list[tuple[str, ...]]) -> str:
        """Paint a title over dim lines, behind a bar. Each line shows as many whole parts as fit."""
        bar = ("▌ ", "cyan")
        width = max(20, self._width()) - 3
        rows = [Text.assemble(bar, (join_fitting(map(clean_lines, parts), width), "dim")) for parts in lines]
        return self.paint(Text.assemble(bar, (title, "bold")), *rows) + "\n"

    def paint_mark(self, mark: str, style: str) -> str:
        return self.paint(Text(mark + "|", style=style)).partition("|")[0] + ("\x1b[0m" if self.theme.colour else "")

    def fit_line(self, text: str, beside: int) -> str:
        """Shorten a line to leave `beside` cells free."""
        return shorten_line(text, max(12, self._width() - beside))

    def paint_preview(self, lines: list[str]) -> str:
        width = max(20, self._width()) - 6
        return self.paint(*(Text(f"  │ {shorten_line(clean_lines(line), width)}", style="dim") for line in lines))

    def paint_user_message(self, text: str) -> str:
        lines = self.paint(Text(clean_prose(text), style="bold"), indent=len(GUTTER)).rstrip("\n").split("\n")
        mark = self.paint_mark("› ", "bold cyan")
        return "".join(
            f"{mark if number == 0 else GUTTER if line else ''}{line}\n" for number, line in enumerate(lines)
        )

    def paint_output(self, text: str) -> str:
        return self._paint_indented(Text(clean_lines(text), style="dim"), 4)

    def paint_aside(self, text: str, style: str = "") -> str:
        return self._paint_indented(Text(clean_lines(text), style=style))

    def paint_reply(self, text: str) -> str:
        return self._paint_indented(Text.assemble(("› ", "bold cyan"), clean_prose(text)))

    def paint_call(self, mark: str, style: str, summary: str, outcome: str) -> str:
        ending = (clean_lines(outcome), "dim" if style == "green" else style)
        return self._paint_indented(Text.assemble((f"{mark} ", style), clean_lines(summary), ending))

    def _paint_indented(self, text: Text, cells: int = 2) -> str:
        return self.paint(Padding(text, (0, 0, 0, cells)))

    def paint_diff(self, text: str) -> str:
        return self.paint(DiffView(text, self._code), strips=False)


def create_terminal_painter(theme: ScreenTheme) -> Painter:
    return Painter(lambda: shutil.get_terminal_size().columns, theme)


def _strip_blank_edges(painted: str) -> str:
    """Strip blank lines around a block: tables, lists and code add their own, and one is enough."""
    lines = painted.split("\n")
    while lines and not _is_visible(lines[0]):
        del lines[0]
    while lines and not _is_visible(lines[-1]):
        del lines[-1]
    return "\n".join([*lines, ""])


def _is_visible(line: str) -> bool:
    return bool(_STYLE.sub("", line).strip())
