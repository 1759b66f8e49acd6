"""A block indented as its file is: models write blanks where a file has tabs, and the other way round. Pure."""

from __future__ import annotations

import re


def match_indentation(body: str, current: str, path: str) -> str:
    """The block by tabs where the file is, by blanks where it is not; a makefile works with tabs alone."""
    makefile = path.rpartition("/")[2].lower().startswith("makefile")
    tabs = _has_tabs(current) or (makefile and not current.strip())
    blanks = find_indent(current)
    if tabs and not blanks and (unit := find_indent(body)):
        return re.sub(
            r"(?m)^ +(?=\S)", lambda found: "\t" * (len(found[0]) // unit) + " " * (len(found[0]) % unit), body
        )
    if blanks and not tabs and _has_tabs(body):
        return re.sub(r"(?m)^\t+", lambda found: " " * blanks * len(found[0]), body)
    return body


def find_indent(text: str) -> int:
    """How many blanks the least indented of the lines has that has some; 0 where none has."""
    return min((len(found) for found in re.findall(r"(?m)^( {2,})\S", text)), default=0)


def _has_tabs(text: str) -> bool:
    return "\n\t" in f"\n{text}"
