"""Reads verdicts.txt, the shell lines with their verdicts."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

HIDDEN = re.compile(r"⟨U\+([0-9A-F]+)⟩")


class Row(NamedTuple):
    verdict: str
    line: str


@cache
def load_sections() -> dict[str, list[Row]]:
    """The rows of each section, by its name up to a colon."""
    sections: dict[str, list[Row]] = {}
    for text in Path(__file__).with_name("verdicts.txt").read_text(encoding="utf-8").split("\n"):
        if text.startswith("== "):
            rows = sections.setdefault(text[3:].partition(": ")[0], [])
        elif text and not text.startswith("# "):
            verdict, _, line = text.partition(": ")
            rows.append(Row(verdict, HIDDEN.sub(lambda found: chr(int(found[1], 16)), line.replace("⏎", "\n"))))
    return sections
