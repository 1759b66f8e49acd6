"""Rendering of Markdown, tables and diffs as terminal lines."""

from __future__ import annotations

from typing import ClassVar

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableDataElement, TableElement
from rich.table import Table
from rich.text import Text

from ollm.domain.line_diff import DiffRow, compare_words, parse_diff


def render_head(row: DiffRow, *, named: bool) -> Text | None:
    """Render a diff's header line without its marks, or return None if nothing is shown."""
    line = row.before or ""
    name = line[4:].partition("\t")[0]
    if line.startswith("--- "):
        return None
    if line.startswith("+++ "):
        shown = "deleted" if name == "/dev/null" else name.removeprefix("b/")
        return Text(shown, style="bold") if named else None
    return Text(line, style="dim") if line else None


def render_diff(diff: str, *, named: bool = False) -> RenderableType:
    """Render a diff line by line, with numbers. Changed words inside a line are highlighted."""
    lines: list[Text] = []
    gone: list[Text] = []
    come: list[Text] = []
    for row in parse_diff(diff):
        if row.kind == "change":
            before, after = mark_words(row.before, row.after)
            gone += [Text(f"  {row.old:4} - ", style="red") + before] if before else []
            come += [Text(f"  {row.new:4} + ", style="green") + after] if after else []
            continue
        lines += [*gone, *come]
        gone, come = [], []
        if row.kind == "same":
            lines.append(Text(f"  {row.new:4}   {row.after}", style="dim"))
        elif row.kind == "gap" and lines and lines[-1].style != "bold":
            lines.append(Text("       ⋯", style="dim"))
        elif row.kind == "head" and (head := render_head(row, named=named)):
            lines.append(Text("  ", style=head.style) + head)
    return Text("\n").join([*lines, *gone, *come])


def mark_words(before: str | None, after: str | None) -> tuple[Text | None, Text | None]:
    """Style both sides of a changed line. If they are similar, the differences are highlighted."""
    old = None if before is None else Text(before, style="red")
    new = None if after is None else Text(after, style="green")
    if old is None or new is None or before is None or after is None:
        return old, new
    gone, come = compare_words(before, after)
    for text, spans in ((old, gone), (new, come)):
        for start, end in spans:
            text.stylize("bold reverse", start, end)
    return old, new


COLUMN_GAP_CELLS = 2
MAX_WORD_CELLS = 24  # a longer word may go on in the next line
MIN_BAR_CELLS = 4
MAX_CELL_LINES = 6


class FittedTable(TableElement):
    """Table with columns as wide as their words, plus spare width to save lines; or else rows as records."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        titles = read_cells(self.header.row.cells) if self.header and self.header.row else []
        rows = [read_cells(row.cells) for row in self.body.rows] if self.body else []
        widths = fit_columns([titles, *rows], options.max_width)
        if widths is None:
            yield from render_records(titles, rows)
        else:
            yield render_table(titles, rows, widths)


def read_cells(cells: list[TableDataElement]) -> list[Text]:
    return [cell.content.copy() for cell in cells]


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
        scaled = zip(row, widths, longest, strict=True)
        table.add_row(*(scale_bar(cell, width, most) for cell, width, most in scaled))
    return table


def scale_bar(cell: Text, width: int, longest: int) -> Text:
    return Text("█" * round(cell.cell_len * width / longest), style="markdown.table.border") if is_bar(cell) else cell


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


class DiffBlock(CodeBlock):
    """Code block. A diff with hunks gets line numbers and highlighted words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = str(self.text)
        if self.lexer_name == "diff" and "\n@@ -" in f"\n{text}":
            yield render_diff(text.rstrip(), named=True)
        else:
            yield from super().__rich_console__(console, options)


class ChatMarkdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": DiffBlock,
        "code_block": DiffBlock,
        "table_open": FittedTable,
    }


FENCES = ("```", "~~~")


class MarkdownBlocks:
    """Splitter of streamed Markdown into blocks. `open` is the part that may still change."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._head = ""  # the line that opened the code
        self._inside = False  # whether that code is part of a list

    @property
    def open(self) -> str:
        return "\n".join([*self._lines, self._rest])

    def render_tail(self, lines: int) -> str:
        """Return the end of the open block as complete Markdown: code stays code, however long it is."""
        last = [*self._lines, self._rest][-lines:]
        cut = self._fence and self._head not in last
        return "\n".join([self._head.lstrip(), *last] if cut else last)

    def feed(self, text: str) -> list[str]:
        """Add text, and return the blocks it completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        finished = [self._add_line(line) for line in lines]
        return [block for block in finished if block]

    def finish(self) -> str:
        """End the text. Returns the open block without blank lines around it."""
        block = self.open.strip("\n")
        self._lines, self._rest, self._fence = [], "", ""
        return block

    def _add_line(self, line: str) -> str:
        """Add a line. Returns the block it completes, or "" if none."""
        mark = line.lstrip()[:3]
        if self._fence:
            return self._add_code_line(line, mark)
        if mark in FENCES:
            return self._open_code(line, mark)
        if line.strip():
            before = self._close() if self._ends_list(line) else ""
            self._lines.append(line)
            return before
        return self._close() if not self._is_in_list() else self._add_blank_line()

    def _open_code(self, line: str, mark: str) -> str:
        """Start a code block, which is separate unless it is indented below a list item."""
        self._inside = self._is_in_list() and line.startswith(" ")
        before = "" if self._inside else self._close()
        self._fence, self._head = mark, line
        self._lines.append(line)
        return before

    def _add_code_line(self, line: str, mark: str) -> str:
        self._lines.append(line)
        if mark != self._fence or line.strip().strip(mark[0]):
            return ""
        self._fence = ""
        return "" if self._inside else self._close()

    def _add_blank_line(self) -> str:
        """Add a blank line: a list may continue after one, and ends after two."""
        if self._lines and not self._lines[-1].strip():
            return self._close()
        self._lines.append("")
        return ""

    def _ends_list(self, line: str) -> bool:
        """Return True if a line ends the list: after a blank line, only an item or indented text continues it."""
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        return self._is_in_list() and after_blank and not line.startswith(" ") and not _is_list_item(line)

    def _is_in_list(self) -> bool:
        return bool(self._lines) and _is_list_item(self._lines[0].lstrip())

    def _close(self) -> str:
        block = "\n".join(self._lines).strip("\n")
        self._lines, self._fence = [], ""
        return block


def _is_list_item(line: str) -> bool:
    number, dot, _ = line.partition(". ")
    return line[:2] in ("- ", "* ", "+ ") or (bool(dot) and number.isdigit())
