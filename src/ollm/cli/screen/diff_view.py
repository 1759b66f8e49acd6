"""Diffs as terminal lines: numbered, coloured as code, and complete. Applied to the old text, the lines that are shown
give the new one, so blanks that would not be seen are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.syntax import Syntax, SyntaxTheme
from rich.text import Text

from ollm.domain.line_diff import DiffRow, Span, compare_words, parse_diff
from ollm.system.terminal_text import make_printable

GUTTER_CELLS = 9
MAX_COLOURED_CHARS = 60_000  # A longer part is shown in one colour.
TAB = "    "
DRAWN = {"\t": "→   ", " ": "·"}
STYLES = {"-": ("diff.removed", "red"), "+": ("diff.added", "green"), " ": ("diff.same", "dim")}


class DiffView:
    """A diff, line by line. Code is coloured if the theme has a background for changes. `named` names the files."""

    def __init__(self, diff: str, code: str | SyntaxTheme, *, named: bool = False) -> None:
        self._diff = diff
        self._code = code
        self._named = named
        self._file = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        hunk: list[DiffRow] = []
        below_lines = False
        for row in (*parse_diff(self._diff), DiffRow(kind="note")):
            if row.kind in ("same", "change"):
                hunk.append(row)
                continue
            yield from self._render_hunk(hunk, console, options.max_width)
            below_lines, hunk = below_lines or bool(hunk), []
            if row.kind == "gap" and below_lines:
                yield Text("       ⋯", style="dim")
            elif row.kind == "note" and row.before:
                yield Text(" " * GUTTER_CELLS + "no newline at the end", style="dim")
            elif row.kind == "head" and (head := self._render_head(row.before or "")):
                yield head
                below_lines = False

    def _render_head(self, line: str) -> Text | None:
        """Render a header line without its marks, or return None if nothing is shown."""
        name = line[4:].partition("\t")[0]
        if line.startswith("--- "):
            self._file = name.removeprefix("a/")
            return None
        if line.startswith("+++ "):
            gone = name == "/dev/null"
            self._file = self._file if gone else name.removeprefix("b/")
            return Text("  deleted" if gone else f"  {self._file}", style="bold") if self._named else None
        return Text(f"  {make_printable(line)}", style="dim") if line else None

    def _render_hunk(self, rows: list[DiffRow], console: Console, width: int) -> Iterator[Text]:
        """Render a run of lines. Within a change, all removed lines stand above the added ones."""
        sides = [show_row(row) for row in rows]
        plain = console.get_style("diff.added", default="").bgcolor is None
        old = self._colour([before[0] for before, _ in sides if before], plain=plain)
        new = self._colour([after[0] for _, after in sides if after], plain=plain)
        gone: list[Text] = []
        come: list[Text] = []
        for row, (before, after) in zip(rows, sides, strict=True):
            removed = render_line(row.old, "-", next(old), before[1], console, width) if before else []
            mark = " " if row.kind == "same" else "+"
            added = render_line(row.new, mark, next(new), after[1], console, width) if after else []
            if row.kind == "same":
                yield from (*gone, *come, *added)
                gone, come = [], []
            else:
                gone += removed
                come += added
        yield from (*gone, *come)

    def _colour(self, lines: list[str], *, plain: bool) -> Iterator[Text]:
        code = "\n".join(lines)
        if not plain and len(code) <= MAX_COLOURED_CHARS:
            lexer = Syntax.guess_lexer(self._file)
            coloured = Syntax("", lexer, theme=self._code).highlight(code).split("\n", allow_blank=True)
            if [line.plain for line in coloured[: len(lines)]] == lines:
                return iter(coloured)
        return (Text(line) for line in lines)


Side = tuple[str, list[Span]]


def show_row(row: DiffRow) -> tuple[Side | None, Side | None]:
    """Show both sides of a row. If they are similar, the parts that differ are found."""
    before, after = row.before, row.after
    if row.kind == "same":
        same = make_printable((after or "").replace("\t", TAB))
        return (same, []), (same, [])
    gone, come = ([], []) if before is None or after is None else compare_words(before, after)
    return None if before is None else show_line(before, gone), None if after is None else show_line(after, come)


def show_line(line: str, spans: list[Span]) -> Side:
    """Show a changed line with its tabs and hidden characters. Blanks that differ or end the line are drawn too."""
    drawn = [*(span for span in spans if line[slice(*span)].isspace()), (len(line.rstrip(" \t")), len(line))]
    shown = [
        DRAWN.get(letter, letter) if any(start <= place < end for start, end in drawn) else letter
        for place, letter in enumerate(line)
    ]
    shown = [DRAWN["\t"] if letter == "\t" else make_printable(letter) for letter in shown]
    places = [0, *accumulate(map(len, shown))]
    return "".join(shown), [(places[start], places[end]) for start, end in spans]


def render_line(number: int, mark: str, text: Text, spans: list[Span], console: Console, width: int) -> list[Text]:
    """Render a numbered line, folded to the width. A background covers the whole width."""
    name, fallback = STYLES[mark]
    style = console.get_style(name, default=fallback)
    for start, end in spans:
        text.stylize(console.get_style(f"{name}.word", default="bold reverse"), start, end)
    ends = list(accumulate(map(len, chop_cells(text.plain, max(1, width - GUTTER_CELLS)))))
    lines = []
    for place, piece in enumerate(text.divide(ends[:-1])):
        gutter = f"  {number:4} {mark} " if place == 0 else " " * GUTTER_CELLS
        line = Text(gutter, style=style, no_wrap=True, overflow="ignore") + piece
        line.pad_right(max(0, width - line.cell_len) if style.bgcolor else 0)
        lines.append(line)
    return lines
