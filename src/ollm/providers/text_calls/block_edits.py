"""What a block under a file's name means for the file as it is: all of it, some definitions, or lines to replace.

A small model that is asked to change one function of a long file writes that function and nothing else. Pure: texts in,
a change out.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ollm.domain.struct import Data

WHOLE_SHARE = 0.6  # of a file's lines that a block must hold to be taken for all of it
SMALL_LINES = 12  # a file of so few lines is rewritten as a whole unless the block only adds to it
SIMILAR_SHARE = 0.5  # of a block's lines that stand in the file, for it to be a changed part of it
KEY_LINES = 8  # a block of so few lines may be taken for lines that take the place of others
_SEARCH = re.compile(
    r"^<{5,9} ?(?:SEARCH|ORIGINAL|OLD)?[^\n]*\n(.*?)^={5,9}[^\n]*\n(.*?)^>{5,9}[^\n]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_HUNK = re.compile(r"^@@.*$", re.MULTILINE)
_ELLIPSIS = re.compile(
    r"^\s*(?:\.\.\.|…)\s*$|^\s*(?:#|//|/\*|--|<!--).*?(?:\.\.\.|…|existing|rest of|unchanged|remains|same as).*$",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:export\s+|default\s+|public\s+|private\s+|static\s+|async\s+|pub\s+)*"
    r"(?:def|class|function\*?|func|fn|interface|struct|impl|trait|type)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_DECORATOR = re.compile(r"^[ \t]*@\w")
_IMPORT = re.compile(r"^(?:import|from|const \w+ = require|use|#include)\b")
_KEY = re.compile(r"^\s*(?:export\s+|const\s+|let\s+|var\s+|-\s+)?[\"']?([A-Za-z_][\w.-]*)[\"']?\s*(?:[:=]|$)")


class Change(Data, frozen=True):
    """`content` for the whole file, or `edits` as pairs of target and replacement, or `mistake`: why it is neither."""

    content: str | None = None
    edits: tuple[tuple[str, str], ...] = ()
    mistake: str = ""


class Definition(Data, frozen=True):
    """A function or class in a text, with what decorates it; `start` and `end` count lines."""

    name: str
    indent: int
    start: int
    end: int
    text: str


def read_change(path: str, body: str, current: str | None, *, shown_whole: bool) -> Change:
    """What this block does to the file at `path`, which holds `current` or is not there."""
    if pairs := read_replacements(body):
        return _check_pairs(path, pairs, current)
    if current is None or not current.strip():
        return Change(content=_end_with_newline(body))
    if body.strip() == current.strip():
        return Change(mistake=f"{path} holds exactly this already: nothing was changed.")
    if (part := _read_part(body, current, shown_whole)) is not None:
        return Change(edits=part)
    if shown_whole and not _elides(body, current):
        return Change(content=_end_with_newline(body))
    lines = len(current.splitlines())
    return Change(
        mistake=f"{path} has {lines} lines, and this block is not all of it: nothing was changed. "
        f"Write the lines to replace:\n{path}\n```\n<<<<<<< SEARCH\nold lines\n=======\nnew lines\n>>>>>>> REPLACE\n```"
    )


def read_replacements(body: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a search/replace block or of a unified diff; none when it is neither."""
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


def _check_pairs(path: str, pairs: tuple[tuple[str, str], ...], current: str | None) -> Change:
    if current is None or not current.strip():
        return Change(content=_end_with_newline("\n".join(new for _, new in pairs)))
    edits = []
    for old, new in pairs:
        edits.append((old, new) if old.strip() else _append_lines(current.splitlines(), new))
    if all(old == new for old, new in edits):
        return Change(mistake=f"SEARCH and REPLACE are equal: nothing was changed in {path}.")
    return Change(edits=tuple(edits))


def _append_lines(old: list[str], new: str) -> tuple[str, str]:
    return _edit_at(old, len(old) - 1, len(old), f"{old[-1]}\n{new}")


def _read_part(body: str, current: str, shown_whole: bool) -> tuple[tuple[str, str], ...] | None:
    """The edits a block asks for that holds only a part of the file; None when it may be the whole."""
    old, new = current.splitlines(), body.strip("\n").splitlines()
    if not _elides(body, current) and _kept_share(old, new) >= WHOLE_SHARE:
        return None
    if (edits := _place_definitions(new, old)) is not None:
        return edits
    if (edits := _place_elided(new, old) or _place_keyed_lines(new, old)) is not None:
        return edits
    if shown_whole and len(old) <= SMALL_LINES and not _elides(body, current):
        return None
    return _place_similar(new, old)


def _kept_share(old: list[str], new: list[str]) -> float:
    """How much of the file the block repeats."""
    real = [line.strip() for line in old if line.strip()]
    kept = SequenceMatcher(None, real, [line.strip() for line in new if line.strip()], autojunk=False)
    return sum(match.size for match in kept.get_matching_blocks()) / max(1, len(real))


def _elides(body: str, current: str) -> bool:
    """Whether a comment stands for what was left out."""
    return any(_ELLIPSIS.match(line) and line.strip() not in current for line in body.splitlines())


def find_definitions(lines: list[str]) -> list[Definition]:
    """Functions and classes, outer ones and those in them. One ends where a line stands as far left again."""
    found = []
    for number, line in enumerate(lines):
        if not (named := _DEFINITION.match(line)):
            continue
        indent, first = len(named["indent"]), number
        while first > 0 and _DECORATOR.match(lines[first - 1]):
            first -= 1
        last = _find_definition_end(lines, number, indent)
        text = "\n".join(lines[first:last])
        found.append(Definition(name=named["name"], indent=indent, start=first, end=last, text=text))
    return found


def _find_definition_end(lines: list[str], start: int, indent: int) -> int:
    end = start + 1
    opened = False  # a head of several lines ends with a line of brackets as far left as the head
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth <= indent:
            closes = line.strip()[0] in "})]"
            if not closes or opened:
                break
            end = number + 1
            if line.strip().rstrip(";,") in ("}", "})"):
                break
            opened = True
            continue
        end = number + 1
    return end


def _place_definitions(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Definitions take the place of those with their names; new ones come behind the last. None when the block holds
    other things besides imports."""
    outer = _outermost(find_definitions(new))
    if not outer or _has_other_lines(new, outer):
        return None
    outer = [part for definition in outer for part in _open_partial_class(definition, new, old)]
    present = {(found.name, found.indent): found for found in find_definitions(old)}
    by_name = {found.name: found for found in present.values()}
    edits = []
    for definition in outer:
        place = present.get((definition.name, definition.indent)) or by_name.get(definition.name)
        place = place or _find_renamed(definition, list(present.values()))
        if place is None:
            edits.append(_append_definition(definition, old))
        elif place.text != (text := _indent_like(definition, place)):
            edits.append(_edit_at(old, place.start, place.end, text))
    edits += _add_imports(new, outer, old)
    return tuple(edits)


def _find_renamed(definition: Definition, present: list[Definition]) -> Definition | None:
    """The definition that differs from this one in its name alone; of several the one with the nearest name."""

    def rename(text: str, name: str) -> str:
        return re.sub(rf"\b{re.escape(name)}\b", "\0", text)

    wanted = rename(definition.text, definition.name)
    alike = [found for found in present if rename(found.text, found.name) == wanted]
    return max(alike, key=lambda found: SequenceMatcher(None, found.name, definition.name).ratio(), default=None)


def _open_partial_class(definition: Definition, new: list[str], old: list[str]) -> list[Definition]:
    """The methods of a class of which the block repeats only a few; otherwise the definition as it is."""
    there = next((found for found in find_definitions(old) if found.name == definition.name), None)
    inner = [
        found for found in find_definitions(new) if definition.start < found.end <= definition.end and found.indent
    ]
    inner = [found for found in inner if found.indent > definition.indent]
    if there is None or not inner:
        return [definition]
    if _kept_share(there.text.split("\n"), definition.text.split("\n")) >= WHOLE_SHARE:
        return [definition]
    return _outermost(inner)


def _outermost(found: list[Definition]) -> list[Definition]:
    kept: list[Definition] = []
    for definition in found:
        if not kept or definition.start >= kept[-1].end:
            kept.append(definition)
    return kept


def _has_other_lines(lines: list[str], outer: list[Definition]) -> bool:
    inside = {number for found in outer for number in range(found.start, found.end)}
    rest = [line for number, line in enumerate(lines) if number not in inside and line.strip()]
    return any(not _IMPORT.match(line) and not _ELLIPSIS.match(line) for line in rest)


def _indent_like(definition: Definition, place: Definition) -> str:
    moved = place.indent - definition.indent
    if moved == 0:
        return definition.text
    lines = definition.text.split("\n")
    return "\n".join(" " * moved + line if moved > 0 and line.strip() else line[max(0, -moved) :] for line in lines)


def _append_definition(definition: Definition, old: list[str]) -> tuple[str, str]:
    """Behind the last definition that stands as deep, or at the end of the file."""
    alike = [found for found in find_definitions(old) if found.indent == definition.indent]
    gap = "\n\n\n" if definition.indent == 0 else "\n\n"
    if not alike:
        return _edit_at(old, len(old) - 1, len(old), f"{old[-1]}{gap}{definition.text}")
    return _edit_at(old, alike[-1].start, alike[-1].end, f"{alike[-1].text}{gap}{definition.text}")


def _edit_at(old: list[str], start: int, end: int, replacement: str) -> tuple[str, str]:
    """These lines as a target that stands only once in the file: with lines from above where they alone do not."""
    first, text = start, "\n".join(old)
    while first > 0 and text.count("\n".join(old[first:end])) > 1:
        first -= 1
    return "\n".join(old[first:end]), "\n".join((*old[first:start], replacement))


def _add_imports(new: list[str], outer: list[Definition], old: list[str]) -> list[tuple[str, str]]:
    head = [line for line in new[: outer[0].start] if _IMPORT.match(line) and line not in old]
    imports = [line for line in old if _IMPORT.match(line)]
    if not head or not imports:
        return []
    return [(imports[0], "\n".join((*head, imports[0])))]


def _place_elided(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Stretches between comments that stand for what was left out: each is placed by its first and last line."""
    edits = []
    stretch: list[str] = []
    for line in (*new, "# ..."):
        if not _ELLIPSIS.match(line) or line in old:
            stretch.append(line)
            continue
        if edit := _place_stretch(stretch, old):
            edits.append(edit)
        stretch = []
    return tuple(edits) if edits and len(new) > 1 and any(map(_ELLIPSIS.match, new)) else None


def _place_stretch(stretch: list[str], old: list[str]) -> tuple[str, str] | None:
    while stretch and not stretch[0].strip():
        stretch = stretch[1:]
    while stretch and not stretch[-1].strip():
        stretch = stretch[:-1]
    if len(stretch) < 2 or old.count(stretch[0]) != 1 or old.count(stretch[-1]) != 1:
        return None
    first, last = old.index(stretch[0]), old.index(stretch[-1])
    there = old[first : last + 1]
    if last <= first or there == stretch or len(there) > 3 * len(stretch) + 5:
        return None
    return _edit_at(old, first, last + 1, "\n".join(stretch))


def _place_keyed_lines(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """A few lines `NAME = value` take the place of the only lines that set the same names."""
    lines = [line for line in new if line.strip()]
    if not lines or len(lines) > KEY_LINES:
        return None
    edits = []
    for line in lines:
        if line in old:
            continue
        key = _KEY.match(line)
        there = [n for n, found in enumerate(old) if key and (match := _KEY.match(found)) and match[1] == key[1]]
        if len(there) != 1:
            return None
        found = old[there[0]]
        edits.append(_edit_at(old, there[0], there[0] + 1, found[: len(found) - len(found.lstrip())] + line.strip()))
    return tuple(edits) or None


def _place_similar(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """A part of the file as it was shown, with changes: it takes the place of the stretch that it repeats most of."""
    real = [line for line in new if line.strip()]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    blocks = [
        block
        for block in matcher.get_matching_blocks()
        if any(line.strip() for line in old[block.a : block.a + block.size])
    ]
    if len(real) < 3 or sum(block.size for block in blocks) < SIMILAR_SHARE * len(real):
        return None
    first, last = blocks[0], blocks[-1]
    start, end = max(0, first.a - first.b), min(len(old), last.a + last.size + len(new) - last.b - last.size)
    if first.b and old[start : first.a] and not _alike(old[start : first.a], new[: first.b]):
        start = first.a
    if end > last.a + last.size and not _alike(old[last.a + last.size : end], new[last.b + last.size :]):
        end = last.a + last.size
    if end - start > 2 * len(new) + 4:
        return None
    return (_edit_at(old, start, end, "\n".join(new)),)


def _alike(one: list[str], other: list[str]) -> bool:
    return SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio() > 0.5


def _end_with_newline(text: str) -> str:
    text = text.lstrip("\n") if text.strip() else text
    return text if not text or text.endswith("\n") else f"{text}\n"
