"""Rendering of Markdown and tables as terminal lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, TableElement
from rich.table import Table
from rich.text import Text

from ollm.cli.screen.diff_view import DiffView

COLUMN_GAP_CELLS = 2
MAX_WORD_CELLS = 24  # A longer word may break across lines.
MIN_BAR_CELLS = 4
MAX_CELL_LINES = 6


class FittedTable(TableElement):
    """Table with columns as wide as their words, plus spare width to save lines; or else rows as records."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        titles = [cell.content.copy() for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content.copy() for cell in row.cells] for row in self.body.rows] if self.body else []
        widths = fit_columns([titles, *rows], options.max_width)
        if widths is None:
            yield from render_records(titles, rows)
        else:
            yield render_table(titles, rows, widths)


def fit_columns(rows: list[list[Text]], room: int) -> list[int] | None:
    """Compute the width of each column, or return None if a row would become a ribbon of broken words."""
    columns = list(zip(*rows, strict=True))
    wanted = [max(cell.cell_len for cell in column) for column in columns]
    widths = [measure_least(list(column)) for column in columns]
    spare = room - sum(widths) - COLUMN_GAP_CELLS * (len(widths) - 1)
    if spare < 0:
        return None
    while spare and (open_columns := [at for at, width in enumerate(widths) if width < wanted[at]]):
        widths[min(open_columns, key=lambda at: widths[at])] += 1
        spare -= 1
    ribbons = (
        cell.cell_len > MAX_CELL_LINES * width and not is_bar(cell)
        for column, width in zip(columns, widths, strict=True)
        for cell in column
    )
    return None if any(ribbons) else widths


def measure_least(column: list[Text]) -> int:
    """Measure the widest word of a column. A bar may shrink."""
    if any(is_bar(cell) for cell in column):
        return MIN_BAR_CELLS
    words = (Text(word).cell_len for cell in column for word in cell.plain.split())
    return min(max(words, default=1), MAX_WORD_CELLS)


def is_bar(cell: Text) -> bool:
    return bool(cell.plain) and not cell.plain.strip("█")


def render_table(titles: list[Text], rows: list[list[Text]], widths: list[int]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border", show_edge=False, collapse_padding=True)
    for title, width in zip(titles, widths, strict=True):
        title.stylize("markdown.table.header")
        table.add_column(title, width=width, overflow="fold")
    longest = [max((row[at].cell_len for row in rows), default=0) for at in range(len(widths))]
    for row in rows:
        table.add_row(
            *(
                Text("█" * round(cell.cell_len * width / most), "markdown.table.border") if is_bar(cell) else cell
                for cell, width, most in zip(row, widths, longest, strict=True)
            )
        )
    return table


def render_records(titles: list[Text], rows: list[list[Text]]) -> list[RenderableType]:
    """Render each row as its first cell, followed by the others with their column names."""
    parts: list[RenderableType] = []
    for first, *others in rows:
        first.stylize("bold")
        parts.append(first)
        grid = Table.grid(padding=(0, COLUMN_GAP_CELLS))
        grid.add_column(no_wrap=True, style="markdown.table.header")
        grid.add_column(overflow="fold")
        for title, cell in zip(titles[1:], others, strict=True):
            if cell.plain.strip():
                grid.add_row(Text("  ") + title, cell)
        parts.append(grid)
    return parts


class LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class DottedItem(ListItem):
    """Item of a numbered list, with the dot that was written behind its number."""

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> Iterator[RenderableType]:
        grid = Table.grid()
        grid.add_column(no_wrap=True, style="markdown.item.number")
        grid.add_column(overflow="fold")
        grid.add_row(f"{number}. ".rjust(len(f" {last_number}. ")), self.elements)
        yield grid


class DiffBlock(CodeBlock):
    """Code block. A diff with hunks gets line numbers and highlighted words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = str(self.text)
        if self.lexer_name == "diff" and "\n@@ -" in f"\n{text}":
            yield DiffView(text, self.theme, named=True)
        else:
            yield from super().__rich_console__(console, options)


class ChatMarkdown(Markdown):
    """Markdown in which HTML is shown as it is written: `Vec<String>` is more often code than a tag."""

    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "list_item_open": DottedItem,
        "fence": DiffBlock,
        "code_block": DiffBlock,
        "html_block": DiffBlock,
        "table_open": FittedTable,
    }

    def __init__(self, markup: str, **options: Any) -> None:
        super().__init__(markup, **options)
        for token in (child for block in self.parsed for child in block.children or ()):
            token.type = "text" if token.type == "html_inline" else token.type


FENCES = ("```", "~~~")
_PARSER = MarkdownIt("commonmark").disable("inline")
_GROWING_BLOCKS = ("bullet_list_open", "ordered_list_open", "code_block")  # They may continue after a blank line.


class MarkdownBlocks:
    """Splitter of streamed Markdown into blocks. `open` is the part that may still change."""

    def __init__(self) -> None:
        self.open = ""
        self._code_line = ""  # The first line of code that has not ended.

    def render_tail(self, lines: int) -> str:
        """Return the end of the open block as complete Markdown: code stays code, however long it is."""
        last = self.open.split("\n")[-lines:]
        return "\n".join([self._code_line, *last] if self._code_line and self._code_line not in last else last)

    def feed(self, text: str) -> list[str]:
        """Add text, and return the blocks it completes. A block is complete if a word after it would not join it."""
        self.open += text
        ends = (self._code_line.lstrip()[:3],) if self._code_line else ("\n\n", *FENCES)
        if "\n" not in text or not any(end in self.open[-len(text) - 3 :] for end in ends):
            return []  # Parsing after each line of a long list would take seconds.
        *lines, rest = self.open.split("\n")
        tokens = [
            (token, token.map[0], token.map[1]) for token in _PARSER.parse("\n".join([*lines, "word"])) if token.map
        ]
        code = (lines[start] for token, start, end in tokens if token.type == "fence" and end > len(lines))
        self._code_line = next(code, "")
        tops = [(token.type, start) for token, start, _ in tokens if token.level == 0]
        if tops[-1][1] == len(lines) and len(tops) > 1 and tops[-2][0] in _GROWING_BLOCKS:
            tops.pop()
        starts = [0, *(start for _, start in tops)]
        self.open = "\n".join([*lines[starts[-1] :], rest])
        blocks = ("\n".join(lines[start:end]).strip("\n") for start, end in pairwise(starts))
        return [block for block in blocks if block]

    def finish(self) -> str:
        """End the text. Returns the open block without blank lines around it."""
        block, self.open, self._code_line = self.open.strip("\n"), "", ""
        return block
