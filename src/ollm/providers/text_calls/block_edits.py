"""What a block under a file's name means for the file as it is: all of it, some definitions, or lines to replace.

A small model that is asked to change one function of a long file writes that function and nothing else. Pure: texts in,
a change out.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.domain.struct import Data
from ollm.providers.text_calls.definitions import (
    WHOLE_SHARE,
    find_definitions,
    list_defined_names,
    place_definitions,
    remove_definitions,
)
from ollm.providers.text_calls.indentation import match_indentation
from ollm.providers.text_calls.line_edits import (
    append_lines,
    compute_kept_share,
    has_ellipsis,
    place_added_lines,
    place_block,
    place_elided,
    place_keyed_lines,
    place_section,
    place_similar,
    place_similar_line,
)
from ollm.providers.text_calls.placeholders import has_placeholder, leaves_out

SMALL_LINES = 12  # a file of so few lines is rewritten as a whole unless the block only adds to it
NOTHING_CHANGES = "{} holds exactly this already: nothing was changed."
WRITE_LESS = " Write only the part that is to change."
NOT_ALL = "The block for {0} is not all of it: nothing was changed. Write the whole of {0}."
LONG_LINES = 50  # of a block, from which one that changes nothing is asked for as a part
LEFT_OUT = "The block for {} leaves a part of the code out: nothing was changed. Write the whole new function."
EMPTY_BLOCK = "The block for {} is empty: nothing was changed."
BREAKS_FILE = "Nothing was changed: with this block {}."
BROKEN_OFF = "The block was cut off before its end: nothing was done. Write less at once."
IDLE_SED = "sed found nothing to replace: no file was changed."
ALREADY_RUN = "That was run already and nothing has changed since: it was not run again. Take another step."
OUTPUT_REPEATED = "That is output, not a command: nothing was run. Take another step."
_SEARCH = re.compile(
    r"^<{5,9} ?(?:SEARCH|ORIGINAL|OLD)?[^\n]*\n(.*?)^={5,9}[^\n]*\n(.*?)^>{5,9}[^\n]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_SEARCH_MARK = re.compile(r"^[<=>]{5,9} ?SEARCH\b.*$", re.MULTILINE)
_REPLACE_MARK = re.compile(r"^[<=>]{5,9} ?REPLACE\b.*$", re.MULTILINE)
_MARKER = re.compile(r"^(?:<{7}|>{7}|[<=>]{5,9} ?(?:SEARCH|REPLACE)\b)", re.MULTILINE)
_ADDS = re.compile(r"\b(?:add|append|insert|move|put|include|introduce)\b", re.IGNORECASE)
_EMPTIES = re.compile(r"\b(?:empty|clear|truncate|erase)\b", re.IGNORECASE)
_HUNK = re.compile(r"^@@.*$", re.MULTILINE)


class Change(Data, frozen=True):
    """`content` for the whole file, or `edits` as pairs of target and replacement, or `mistake`: why it is neither."""

    content: str | None = None
    edits: tuple[tuple[str, str], ...] = ()
    mistake: str = ""


def read_change(
    path: str,
    body: str,
    current: str | None,
    *,
    shown_whole: bool,
    removed: Collection[str] = (),
    request: str = "",
) -> Change:
    """What this block does to the file at `path`, which holds `current` or is not there. `removed` are the definitions
    that are to go: one that is only shown again is meant so. `request` says which of several like lines are meant."""
    body = match_indentation(body, current or "", path)
    change = _read_change(path, body, current, shown_whole, removed, request)
    written = change.edits or (("", change.content or ""),)
    left_out = any(leaves_out(new, old) if old else has_placeholder(new, current or "") for old, new in written)
    return Change(mistake=LEFT_OUT.format(path)) if left_out and not change.mistake else change


def _read_change(
    path: str, body: str, current: str | None, shown_whole: bool, removed: Collection[str], request: str
) -> Change:
    if pairs := read_replacements(body) or read_bare_diff(body, current or ""):
        return _check_pairs(path, pairs, current)
    if _MARKER.search(body):
        return Change(mistake=f"The block for {path} is not whole: nothing was changed.")
    if current is None or not current.strip():
        return Change(content=_end_with_newline(body))
    if (part := _read_part(path, body, current, shown_whole, request)) is not None:
        edits = tuple((old, new) for old, new in part if old != new) or remove_definitions(body, current, removed)
        return Change(edits=edits) if edits else Change(mistake=_explain_idle(path, body, current))
    empties = not body.strip() and not _EMPTIES.search(request)
    if shown_whole and not empties and not has_ellipsis(body, current) and _may_be_whole(body, current):
        return Change(content=_end_with_newline(body))
    return Change(mistake=_explain_partial(path, body, current) if body.strip() else EMPTY_BLOCK.format(path))


def _explain_idle(path: str, body: str, current: str) -> str:
    """Why a block brings nothing: the file has all of it, or what it has in another order is not all of the file."""
    if body.count("\n") >= LONG_LINES:
        return NOTHING_CHANGES.format(path) + WRITE_LESS
    new, old = ([line.strip() for line in text.splitlines() if line.strip()] for text in (body, current))
    there = has_ellipsis(body, current) or any(old[place : place + len(new)] == new for place in range(len(old)))
    return NOTHING_CHANGES.format(path) if there or len(old) >= LONG_LINES else NOT_ALL.format(path)


def _may_be_whole(body: str, current: str) -> bool:
    """Whether a block may stand for all of a file that was shown: it is about as long, or made of the file's lines."""
    old, new = current.splitlines(), body.strip("\n").splitlines()
    if _begins_inside(new, old):
        return False
    if len(old) <= SMALL_LINES or 2 * len(new) >= len(old):
        return True
    known = set(map(str.strip, old))
    return sum(line.strip() in known for line in new) >= WHOLE_SHARE * len(new)


def _begins_inside(new: list[str], old: list[str]) -> bool:
    """Whether the block's first line is indented and the file's is not: then it is a part of it."""
    first, there = (next((line for line in lines if line.strip()), "") for lines in (new, old))
    return first[:1].isspace() and not there[:1].isspace()


def _explain_partial(path: str, body: str, current: str) -> str:
    """Why the block was not taken, with the lines of the file that come nearest to it."""
    old = current.splitlines()
    names = list_defined_names(body)
    told = f"{path} has {len(old)} lines, and this block is not all of it: nothing was changed."
    near = next((found for found in find_definitions(old) if found.name in names), None)
    return f"{told} {near.name} is now:\n```\n{near.text[:1200]}\n```\nWrite it with your change." if near else told


def read_replacements(body: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a search/replace block or of a unified diff; none when it is neither."""
    body = _REPLACE_MARK.sub(">>>>>>> REPLACE", _SEARCH_MARK.sub("<<<<<<< SEARCH", body))
    pairs = tuple((found[1].rstrip("\n"), found[2].rstrip("\n")) for found in _SEARCH.finditer(body))
    return pairs or (_read_diff(body) if _HUNK.search(body) or body.startswith("--- ") else ())


def _read_diff(body: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for hunk in _HUNK.split(body)[1:]:
        lines = [line for line in hunk.strip("\n").split("\n") if not line.startswith(("\\", "---", "+++"))]
        old = [line[1:] for line in lines if not line.startswith("+")]
        new = [line[1:] for line in lines if not line.startswith("-")]
        if old != new:
            pairs.append(("\n".join(old), "\n".join(new)))
    return tuple(pairs)


def read_bare_diff(body: str, current: str) -> tuple[tuple[str, str], ...]:
    """The pairs of lines marked with - and + as they were shown to the model, where no head says that it is a diff."""
    lines, known = body.strip("\n").split("\n"), set(current.splitlines())
    gone = [line for line in lines if line.startswith("-")]
    if not gone or not any(line.startswith("+") for line in lines):
        return ()
    if any(line in known or line[1:] not in known for line in gone):
        return ()
    pairs: list[tuple[list[str], list[str]]] = []
    for line in lines:
        if line.startswith("-") and (not pairs or pairs[-1][1]):
            pairs.append(([], []))
        if line.startswith(("-", "+")) and pairs:
            pairs[-1][line.startswith("+")].append(line[1:])
    return tuple(("\n".join(old), "\n".join(new)) for old, new in pairs)


def _check_pairs(path: str, pairs: tuple[tuple[str, str], ...], current: str | None) -> Change:
    if current is None or not current.strip():
        return Change(content=_end_with_newline("\n".join(new for _, new in pairs)))
    edits = []
    for old, new in pairs:
        edits.append((old, new) if old.strip() else append_lines(current.splitlines(), new))
    if all(old == new for old, new in edits):
        return Change(mistake=f"SEARCH and REPLACE are equal: nothing was changed in {path}.")
    return Change(edits=tuple(edits))


def _read_part(
    path: str, body: str, current: str, shown_whole: bool, request: str
) -> tuple[tuple[str, str], ...] | None:
    """The edits a block asks for that holds only a part of the file; None when it may be the whole."""
    old, new = current.splitlines(), body.strip("\n").splitlines()
    if body.strip() == current.strip():
        return ()
    if not has_ellipsis(body, current) and compute_kept_share(old, new) >= WHOLE_SHARE:
        return None
    edits = place_definitions(new, old)
    if edits is None and path.endswith((".md", ".markdown")):
        edits = place_section(new, old)
    if edits is None:
        edits = place_elided(new, old) or place_keyed_lines(new, old, request)
    if edits is not None:
        return edits
    if _ADDS.search(request) and (added := place_added_lines(new, old)):
        return added
    if shown_whole and len(old) <= SMALL_LINES and not has_ellipsis(body, current) and not _begins_inside(new, old):
        return None
    return (
        place_block(new, old)
        or place_similar(new, old)
        or place_similar_line(new, old, _list_named_lines(old, request))
    )


def _list_named_lines(old: list[str], request: str) -> set[int]:
    """The lines of the definitions that the request names."""
    named = [found for found in find_definitions(old) if re.search(rf"(?<!\w){re.escape(found.name)}(?!\w)", request)]
    return {place for found in named for place in range(found.start, found.end)}


def _end_with_newline(text: str) -> str:
    text = text.lstrip("\n") if text.strip() else text
    return text if not text or text.endswith("\n") else f"{text}\n"
