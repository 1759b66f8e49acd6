"""Works out what a code block that a model wrote under a file name changes: the whole file, definitions, or lines.

A small model that should change one function of a long file writes only that function. Pure: texts in, a change out.
"""

from __future__ import annotations

import re

from ollm.domain.struct import Data
from ollm.runtime.small_models.placement import (
    ELLIPSIS,
    WHOLE_SHARE,
    AmbiguousError,
    append_lines,
    compute_kept_share,
    has_ellipsis,
    place_definitions,
    place_similar,
)
from ollm.services.syntax_check import find_syntax_error

SMALL_LINES = 12  # So short a file is rewritten as a whole, except for its definitions.
NOTHING_CHANGES = "{} holds exactly this already: nothing was changed."
HOLDS_MORE = "{} holds all of this already, and more: nothing was changed."
LEFT_OUT = "The block for {} leaves a part of the code out: nothing was changed. Write all lines of what you change."
NOT_LINES = "The block for {} has marks of a change: nothing was changed. Write the lines as they shall be."
SAME_LINES = "The block for {} replaces lines by the same lines: nothing was changed."
SEVERAL_PLACES = "The block for {} fits several places (lines {}): nothing was changed. Write what is around it too."
NOT_ALL = "{} has {} lines, and this block is not all of it: nothing was changed."
EMPTY_BLOCK = "The block for {} is empty: nothing was changed."
PAGES = (".md", ".markdown", ".rst", ".txt")  # A page is rewritten as often as it is extended.
_SEARCH = re.compile(
    r"^<{5,9} ?(?:SEARCH|ORIGINAL|OLD)?[^\n]*\n(.*?)^={5,9}[^\n]*\n(.*?)^>{5,9}[^\n]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_MARKER = re.compile(r"^(?:<{7}|>{7}|@@ -|[<=>]{5,9} ?(?:SEARCH|REPLACE)\b)", re.MULTILINE)
_TOP_KEY = re.compile(r"^(\[+[^\]\n]+\]+|[\w\"'.-]+)[ \t]*(?:[:=]|$)", re.MULTILINE)
_GAP_LINE = re.compile(r"^\s*[\[(<]?(?:\.\.\.|…)[\])>]?\s*$")
_SHOWN = re.compile(
    r"^\S+ is long \(\d+ lines\)\. (?:Parts of it|Its definitions|It begins):", re.MULTILINE
)  # Primed files contain such a line.


class Change(Data, frozen=True):
    """A change: `content` of the whole file, `edits` as pairs of target and replacement, or `mistake`: why neither."""

    content: str | None = None
    edits: tuple[tuple[str, str], ...] = ()
    mistake: str = ""


def read_change(path: str, body: str, current: str | None) -> Change:
    """Return the change this block makes to the file at `path`. `current` is its content, or None without a file."""
    try:
        change = _read_change(path, body, current)
    except AmbiguousError as places:
        return Change(mistake=SEVERAL_PLACES.format(path, places))
    written = change.edits or (("", change.content or ""),)
    known = "... …" if current is None else current  # A new stub may have dots as its body.
    mark = _GAP_LINE if path.endswith(PAGES) else ELLIPSIS
    left_out = any(has_ellipsis(new, old or known, mark) for old, new in written)
    left_out = left_out or any(_SHOWN.search(new) for _, new in written)
    return Change(mistake=LEFT_OUT.format(path)) if left_out and not change.mistake else change


def _read_change(path: str, body: str, current: str | None) -> Change:
    if pairs := read_replacements(body):
        return _check_pairs(path, pairs, current)
    if mistake := _find_mistake(path, body, current):
        return Change(mistake=mistake)
    if current is None or not current.strip() or is_whole_document(path, body, current):
        return Change(content=_end_with_newline(body))
    if (part := _read_part(body, current)) is not None:
        edits = tuple((old, new) for old, new in part if old != new)
        return Change(edits=edits) if edits else Change(mistake=HOLDS_MORE.format(path))
    if body.strip() and not has_ellipsis(body, current) and _may_be_whole(path, body, current):
        return Change(content=_end_with_newline(body))
    told = NOT_ALL.format(path, len(current.splitlines())) if body.strip() else EMPTY_BLOCK.format(path)
    return Change(mistake=told)


def _find_mistake(path: str, body: str, current: str | None) -> str:
    if current is not None and body.strip() == current.strip():
        return NOTHING_CHANGES.format(path)
    may_be_diff = current or "\n+" in f"\n{body}"  # In a new file, lines with a minus alone are a list.
    marked = _MARKER.search(body) or (may_be_diff and _is_loose_diff(body, current or ""))
    return NOT_LINES.format(path) if marked else ""


def _is_loose_diff(body: str, current: str) -> bool:
    """Return True if all lines have a diff mark, and no line of the file does."""
    marked = [line.startswith(("+", "-")) for line in body.splitlines()]
    return bool(marked) and all(marked) and not any(line.startswith(("+", "-")) for line in current.splitlines())


def is_whole_document(path: str, body: str, current: str) -> bool:
    """Return True for data that parses by itself. TOML and YAML must also set every key that the file sets."""
    kind = path.rpartition(".")[2].lower()
    if kind not in ("json", "toml", "yaml", "yml") or not body.strip() or find_syntax_error(path, body):
        return False
    there = set(_TOP_KEY.findall(current))
    return body.lstrip()[0] in "{[" if kind == "json" else bool(there) and there <= set(_TOP_KEY.findall(body))


def _may_be_whole(path: str, body: str, current: str) -> bool:
    """Return True if a block may be the whole file: it is about as long, or the file is a short page."""
    old, new = current.splitlines(), body.strip("\n").splitlines()
    short_page = path.endswith(PAGES) and len(old) <= SMALL_LINES
    return (short_page or 2 * len(new) >= len(old)) and not _begins_inside(new, old)


def _begins_inside(new: list[str], old: list[str]) -> bool:
    """Return True if the block's first line is indented and the file's is not, so that the block is a part."""
    first, there = (next((line for line in lines if line.strip()), "") for lines in (new, old))
    return first[:1].isspace() and not there[:1].isspace()


def read_replacements(body: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a search/replace block, or () if it is not one."""
    return tuple((found[1].rstrip("\n"), found[2].rstrip("\n")) for found in _SEARCH.finditer(body))


def _check_pairs(path: str, pairs: tuple[tuple[str, str], ...], current: str | None) -> Change:
    if current is None or not current.strip():
        return Change(content=_end_with_newline("\n".join(new for _, new in pairs)))
    edits = []
    for old, new in pairs:
        edits.append((old, new) if old.strip() else append_lines(current.splitlines(), new))
    if all(old == new for old, new in edits):
        return Change(mistake=SAME_LINES.format(path))
    return Change(edits=tuple(edits))


def _read_part(body: str, current: str) -> tuple[tuple[str, str], ...] | None:
    """Return the edits of a block that contains only a part of the file, or None if it may be the whole."""
    old, new = current.splitlines(), body.strip("\n").splitlines()
    if not has_ellipsis(body, current) and compute_kept_share(old, new) >= WHOLE_SHARE:
        return None
    edits = place_definitions(new, old)
    small = len(old) <= SMALL_LINES and not has_ellipsis(body, current) and not _begins_inside(new, old)
    return edits if edits is not None or small else place_similar(new, old)


def _end_with_newline(text: str) -> str:
    text = text.lstrip("\n") if text.strip() else text
    return text if not text or text.endswith("\n") else f"{text}\n"
