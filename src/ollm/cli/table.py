"""Tables and warnings for people. Without click, for what has to start quickly."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ollm.system.terminal_text import make_printable


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be; control characters in the cells are made visible."""
    lines = [list(headings), *([make_printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(_measure_width(line[column]) for line in lines) for column in range(len(headings))]
    padded = (
        [cell + " " * (width - _measure_width(cell)) for cell, width in zip(line, widths, strict=True)]
        for line in lines
    )
    print("\n".join("  ".join(cells).rstrip() for cells in padded))


def _measure_width(text: str) -> int:
    if text.replace("…", ".").isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def warn(text: str) -> None:
    """A sentence on stderr."""
    print(wrap_for_terminal(f"ollm: {text}"), file=sys.stderr)


def wrap_for_terminal(text: str) -> str:
    """Its first line broken between words where stderr is a terminal, whose own breaks would part a word; as it is
    elsewhere. Lines below it may be commands to copy."""
    import os

    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal
        return text
    first, newline, rest = text.partition("\n")
    if len(first) < width:
        return text
    import textwrap

    options = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": "  "}
    return textwrap.fill(first, max(width - 1, 20), **options) + newline + rest  # type: ignore[arg-type]
