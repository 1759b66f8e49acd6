"""Lines of a block in the place of the lines of a file that they stand for: by name, likeness, heading or gap."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import SequenceMatcher

SIMILAR_LINE = 0.65  # how like a line must be that a single one takes the place of
NEXT_LINE = 0.15  # how much less the next line must be like it
SIMILAR_SHARE = 0.5  # of a block's lines that are in the file, for it to be a changed part of it
REMOVED = "\0"  # in place of lines that go
KEY_LINES = 8  # a block of so few lines may be taken for lines that take the place of others
ELLIPSIS = re.compile(
    r"^\s*(?:\.\.\.|…)\s*$|^\s*(?:#|//|/\*|--|<!--).*?(?:\.\.\.|…|existing|rest of|unchanged|remains|same as).*$",
    re.IGNORECASE,
)
_OPENS = re.compile(r"[{\[(]\s*$")
_IMPORT = re.compile(r"^(?:import|from)\s+\w")
_CONSTANT = re.compile(r"^[A-Z][A-Z\d_]*\s*=")
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$")
_VALUE_KEY = re.compile(r"^([A-Za-z_][\w.-]*)\s*[:=]\s*\S")
_KEY = re.compile(r"^\s*(?:export\s+|const\s+|let\s+|var\s+|-\s+)?[\"']?([A-Za-z_][\w.-]*)[\"']?\s*(?:[:=]|$)")


def make_edit_at(old: list[str], start: int, end: int, replacement: str) -> tuple[str, str]:
    """These lines as a target that is there only once in the file: with lines from above where they alone do not."""
    first, text = start, "\n".join(old)
    while first > 0 and text.count("\n".join(old[first:end])) > 1:
        first -= 1
    kept = old[first:start] if replacement is REMOVED else (*old[first:start], replacement)
    return "\n".join(old[first:end]), "\n".join(kept)


def compute_kept_share(old: list[str], new: list[str]) -> float:
    """How much of the file the block repeats."""
    real = [line.strip() for line in old if line.strip()]
    kept = SequenceMatcher(None, real, [line.strip() for line in new if line.strip()], autojunk=False)
    return sum(match.size for match in kept.get_matching_blocks()) / max(1, len(real))


def has_ellipsis(body: str, current: str) -> bool:
    """Whether a comment stands for what was left out."""
    return any(ELLIPSIS.match(line) and line.strip() not in current for line in body.splitlines())


def append_lines(old: list[str], new: str) -> tuple[str, str]:
    return make_edit_at(old, len(old) - 1, len(old), f"{old[-1]}\n{new}")


def place_added_lines(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """New lines for a file that has none of them yet: they go after the last line of their kind."""
    lines = [line for line in new if line.strip()]
    known = set(map(str.strip, old))
    if not lines or lines[0][:1].isspace() or any(line.strip() in known for line in lines):
        return None
    keys = {found[1] for line in old if (found := _VALUE_KEY.match(line))}
    if any((found := _VALUE_KEY.match(line)) and found[1] in keys for line in lines):
        return None  # it sets anew what is set there
    kind = _IMPORT if all(map(_IMPORT.match, lines)) else _CONSTANT if all(map(_CONSTANT.match, lines)) else None
    places = [number for number, line in enumerate(old) if kind and kind.match(line)]
    if not places:
        return (append_lines(old, "\n".join(new)),)
    place = places[-1]
    return (make_edit_at(old, place, place + 1, "\n".join((old[place], *lines))),)


def place_section(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """A section of a page takes the place of the one under its heading; a new one comes at the end."""
    heading = _HEADING.match(new[0]) if new else None
    if heading is None or len(heading[1]) < 2 or any(_HEADING.match(line) for line in new[1:]):
        return None
    start = next((number for number, line in enumerate(old) if line.strip() == new[0].strip()), None)
    if start is None:
        last = max(number for number, line in enumerate(old) if line.strip())
        return (make_edit_at(old, last, last + 1, "\n".join((old[last], "", *new))),)
    end = start + 1
    while end < len(old) and not ((found := _HEADING.match(old[end])) and len(found[1]) <= len(heading[1])):
        end += 1
    while end > start + 1 and not old[end - 1].strip():
        end -= 1
    return (make_edit_at(old, start, end, "\n".join(new).rstrip()),)


def place_elided(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Stretches between comments that stand for what was left out: each is placed by its first and last line."""
    edits = []
    stretch: list[str] = []
    for line in (*new, "# ..."):
        if not ELLIPSIS.match(line) or line in old:
            stretch.append(line)
            continue
        if edit := _place_stretch(stretch, old):
            edits.append(edit)
        stretch = []
    return tuple(edits) if edits and len(new) > 1 and any(map(ELLIPSIS.match, new)) else None


def _place_stretch(stretch: list[str], old: list[str]) -> tuple[str, str] | None:
    while stretch and not stretch[0].strip():
        stretch = stretch[1:]
    while stretch and not stretch[-1].strip():
        stretch = stretch[:-1]
    closed = stretch and stretch[-1].strip()[:1] in ("}", "]", ")")
    if closed and (block := place_block(stretch, old)):
        return block[0]
    if len(stretch) < 2 or old.count(stretch[0]) != 1 or old.count(stretch[-1]) != 1:
        return (
            next(iter(place_similar(stretch, old) or ()), None)
            if old.count(stretch[0] if stretch else "") == 1
            else None
        )
    first, last = old.index(stretch[0]), old.index(stretch[-1])
    there = old[first : last + 1]
    if last <= first or there == stretch or len(there) > 3 * len(stretch) + 5:
        return None
    return make_edit_at(old, first, last + 1, "\n".join(stretch))


def place_keyed_lines(new: list[str], old: list[str], request: str) -> tuple[tuple[str, str], ...] | None:
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
        there = _choose_mentioned(there, old, line, request)
        if not there:
            return None
        found = old[there[0]]
        if len(there) > 1:
            edits.append((found.strip(), line.strip()))
            continue
        edits.append(
            make_edit_at(old, there[0], there[0] + 1, found[: len(found) - len(found.lstrip())] + line.strip())
        )
    return tuple(edits) or None


def _choose_mentioned(there: list[int], old: list[str], line: str, request: str) -> list[int]:
    """Of lines with the same name those whose value the request names; all of them must be alike."""
    if len(there) <= 1:
        return there
    named = [
        number
        for number in there
        if any(
            word in request and word not in line
            for word in re.split(r"[\s:=;,\"']+", old[number].strip())
            if len(word) > 2
        )
    ]
    return named if len({old[number].strip() for number in named}) == 1 else []


def place_block(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """A block that begins with a line of the file which opens one takes the place of that one: `"name": {` up to its
    bracket."""
    lines = [line for line in new if line.strip()]
    start = find_only_line(lines[0], old) if lines and _OPENS.search(lines[0]) else None
    if start is None or find_block_end(0, lines) != len(lines):
        return None
    end = find_block_end(start, old)
    moved = count_indent(old[start]) - count_indent(lines[0])
    text = "\n".join(" " * moved + line if moved > 0 else line[max(0, -moved) :] for line in lines)
    ends = old[end - 1].endswith(","), text.endswith(",")
    text = f"{text}," if ends == (True, False) else text[:-1] if ends == (False, True) else text
    return (make_edit_at(old, start, end, text),)


def find_only_line(line: str, lines: list[str]) -> int | None:
    """Where a line stands, if once."""
    found = [number for number, other in enumerate(lines) if other.strip() == line.strip()]
    return found[0] if len(found) == 1 else None


def find_block_end(start: int, lines: list[str]) -> int:
    """Behind the last line that is deeper than the first, and the bracket that closes it."""
    depth = count_indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or count_indent(lines[end]) > depth):
        end += 1
    closes = end < len(lines) and lines[end].strip()[:1] in ("}", "]", ")")
    return end + closes


def count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def place_similar(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
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
    if first.b and old[start : first.a] and not _are_alike(old[start : first.a], new[: first.b]):
        start = first.a
    if end > last.a + last.size and not _are_alike(old[last.a + last.size : end], new[last.b + last.size :]):
        end = last.a + last.size
    anchor = find_only_line(real[0], old)
    if end - start > 2 * len(new) + 4 or (anchor is not None and not start <= anchor < end):
        return None
    return (make_edit_at(old, start, end, "\n".join(new)),)


def place_similar_line(new: list[str], old: list[str], named: Collection[int]) -> tuple[tuple[str, str], ...] | None:
    """One line takes the place of the one it is most like, among those `named` by the request where one of them is."""
    lines = [line for line in new if line.strip()]
    if len(lines) != 1:
        return None
    ratios = {n: SequenceMatcher(None, line.strip(), lines[0].strip()).ratio() for n, line in enumerate(old)}
    like = {place: ratio for place, ratio in ratios.items() if ratio >= SIMILAR_LINE}
    like = {place: ratio for place, ratio in like.items() if place in named} or like
    best = max(like.values(), default=0.0)
    near = [place for place, ratio in like.items() if ratio > best - NEXT_LINE]
    if len(near) != 1:
        return None
    place = near[0]
    indent = old[place][: len(old[place]) - len(old[place].lstrip())]
    return (make_edit_at(old, place, place + 1, indent + lines[0].strip()),)


def _are_alike(one: list[str], other: list[str]) -> bool:
    return SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio() > 0.5
