"""A change of a file as people read it: side by side where there is room, else one under the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from ollm.domain.struct import Data

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

SIDE_BY_SIDE_MIN_COLUMNS = 120
MAX_MARKED_WORDS = 200
MIN_LIKENESS = 0.5  # of two lines whose words are compared
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class DiffRow(Data, frozen=True):
    """One row of the view: a line before and after, None where there is none; numbers count from 1."""

    kind: Literal["same", "change", "gap", "head"]
    before: str | None = None
    after: str | None = None
    old: int = 0
    new: int = 0


def parse_diff(diff: str) -> Iterator[DiffRow]:
    """The rows of a unified diff; removed and added lines of one change stand side by side."""
    old = new = left = 0  # left: lines of this place that are still to come, on either side
    gone: list[str] = []
    come: list[str] = []

    def change() -> Iterator[DiffRow]:
        nonlocal old, new
        for place in range(max(len(gone), len(come))):
            before = gone[place] if place < len(gone) else None
            after = come[place] if place < len(come) else None
            yield DiffRow(kind="change", before=before, after=after, old=old, new=new)
            old, new = old + (before is not None), new + (after is not None)
        gone.clear()
        come.clear()

    for line in diff.splitlines():
        if line.startswith("-") and not (line.startswith("--- ") and left <= 0):
            if come:
                yield from change()
            gone.append(line[1:])
            left -= 1
        elif line.startswith("+") and not (line.startswith("+++ ") and left <= 0):
            come.append(line[1:])
            left -= 1
        else:
            yield from change()
            if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[3])
                left = int(found[2] or 1) + int(found[4] or 1)
                yield DiffRow(kind="gap", before=line)
            elif line.startswith(" ") and (old or new):
                yield DiffRow(kind="same", before=line[1:], after=line[1:], old=old, new=new)
                old, new, left = old + 1, new + 1, left - 2
            elif not line.startswith("\\"):
                yield DiffRow(kind="head", before=line)
    yield from change()


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
    from difflib import SequenceMatcher

    from rich.text import Text

    old = None if before is None else Text(before, style="red")
    new = None if after is None else Text(after, style="green")
    if old is None or new is None or before is None or after is None:
        return old, new
    left, right = re.findall(r"\w+|\s+|.", before), re.findall(r"\w+|\s+|.", after)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if max(len(left), len(right)) > MAX_MARKED_WORDS or matcher.ratio() < MIN_LIKENESS:
        return old, new
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            old.stylize("bold reverse", len("".join(left[:first])), len("".join(left[:last])))
            new.stylize("bold reverse", len("".join(right[:start])), len("".join(right[:end])))
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
