"""Tables of Markdown that stay readable in a narrow terminal: whole words, bars to scale, records where columns do not
fit."""

from __future__ import annotations

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import TableDataElement, TableElement
from rich.table import Table
from rich.text import Text

COLUMN_GAP_CELLS = 2
MAX_WORD_CELLS = 24  # a longer word may go on in the next line
MIN_BAR_CELLS = 4
MAX_CELL_LINES = 6


class FittedTable(TableElement):
    """Columns as wide as their words, the rest of the width where it saves lines; else each row as a record."""

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
    """The width of each column, or none where some row would become a ribbon of broken words."""
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
    """The widest word of it; a bar may shrink."""
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
    """The first cell of a row, and under it what the others say, each with the name of its column."""
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
