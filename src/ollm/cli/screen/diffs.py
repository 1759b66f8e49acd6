"""A change of a file as people read it: side by side where there is room, else one under the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.line_diff import DiffRow, compare_words, parse_diff

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

SIDE_BY_SIDE_MIN_COLUMNS = 120


def render_diff(diff: str, width: int, *, named: bool = False) -> RenderableType:
    """A change, side by side where there is room; `named` puts the name of each file above its changes."""
    wide = width >= SIDE_BY_SIDE_MIN_COLUMNS
    return render_side_by_side(diff, named=named) if wide else render_unified(diff, named=named)


def render_head(row: DiffRow, *, named: bool) -> Text | None:
    """What a line before the changes says, other than the marks of the format; None for nothing."""
    from rich.text import Text

    line = row.before or ""
    name = line[4:].partition("\t")[0]
    if line.startswith("--- "):
        return None
    if line.startswith("+++ "):
        shown = "deleted" if name == "/dev/null" else name.removeprefix("b/")
        return Text(shown, style="bold") if named else None
    return Text(line, style="dim") if line else None


def render_unified(diff: str, *, named: bool = False) -> RenderableType:
    """One line under the other, with numbers; the words that changed inside a line stand out."""
    from rich.text import Text

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
    """Both sides of a changed line; where they are alike, what differs is set off."""
    from rich.text import Text

    old = None if before is None else Text(before, style="red")
    new = None if after is None else Text(after, style="green")
    if old is None or new is None or before is None or after is None:
        return old, new
    gone, come = compare_words(before, after)
    for text, spans in ((old, gone), (new, come)):
        for start, end in spans:
            text.stylize("bold reverse", start, end)
    return old, new


def render_side_by_side(diff: str, *, named: bool = False) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None, 1):
        table.add_column(ratio=ratio, overflow="fold", no_wrap=False)
    places = 0  # of this file
    for pair in parse_diff(diff):
        if pair.kind == "gap":
            if places:
                table.add_row("", Text("⋯", style="dim"), "", Text("⋯", style="dim"))
            places += 1
            continue
        if pair.kind == "head":
            if head := render_head(pair, named=named):
                table.add_row("", head, "", "")
                places = 0
            continue
        table.add_row(*render_side(pair, pair.before, pair.old, "-"), *render_side(pair, pair.after, pair.new, "+"))
    return table


def render_side(pair: DiffRow, line: str | None, number: int, mark: str) -> tuple[RenderableType, RenderableType]:
    """Number and text of one side; the mark says what the colour says, for those who see none."""
    from rich.text import Text

    if line is None:
        return "", ""
    if pair.kind == "same":
        return Text(f"{number:4}  ", style="dim"), Text(line, style="dim")
    before, after = mark_words(pair.before, pair.after)
    return Text(f"{number:4} {mark}", style="dim"), (before if mark == "-" else after) or Text(line)
