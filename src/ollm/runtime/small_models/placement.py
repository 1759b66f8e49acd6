"""Places the parts of a block in a file: functions, classes and settings by name, other lines by similarity.

Pure: lines in, pairs of target and replacement out.
"""

from __future__ import annotations

import re
from difflib import Match, SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from ollm.domain.struct import Data

SIMILAR_SHARE = 0.5
MAX_TOLD_PLACES = 6
MAX_DEFINITION_LINES = 45
ELLIPSIS = re.compile(
    r"^\s*(?:\.\.\.|…)\s*$|^\s*(?:#|//|\{?/\*|--|<!--|;|%)\s*[\[(<]?"
    r"(?:\.\.\.|…|.*?\b(?:existing|rest of|unchanged|remain|same as))",
    re.IGNORECASE,
)
WHOLE_SHARE = 0.6
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:export\s+|default\s+|public\s+|private\s+|static\s+|async\s+|pub\s+)*"
    r"(?:def|class|function\*?|func|fn|interface|struct|impl|trait|type)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_DECORATOR = re.compile(r"^[ \t]*@\w")
_ANY_IMPORT = re.compile(r"^(?:import|from|const \w+ = require|use|#include)\b")


class AmbiguousError(Exception):
    """A block that fits several places. `lines` are their starts, counting from 0."""

    def __init__(self, lines: list[int]) -> None:
        super().__init__(", ".join(str(line + 1) for line in sorted(lines)[:MAX_TOLD_PLACES]))


class Definition(Data, frozen=True):
    """A function or class in a text, with its decorators. `start` and `end` are line numbers."""

    name: str
    indent: int
    start: int
    end: int
    text: str


def find_definitions(lines: list[str]) -> list[Definition]:
    """Find functions and classes, including nested ones. Each ends at the next line with the same or less indent."""
    found = []
    for number, line in enumerate(lines):
        if not (named := _DEFINITION.match(line)):
            continue
        indent, first = len(named["indent"]), number
        while first > 0 and _DECORATOR.match(lines[first - 1]):
            first -= 1
        last = find_block_end(lines, number)
        if last == number + 1 and line.rstrip().endswith((":", "{")):
            continue  # Only its head is there.
        text = "\n".join(lines[first:last])
        found.append(Definition(name=named["name"], indent=indent, start=first, end=last, text=text))
    return found


def list_defined_names(text: str) -> set[str]:
    """Return the names of all functions and classes in a text."""
    return {found.name for found in find_definitions(text.splitlines())}


def find_block_end(lines: list[str], start: int) -> int:
    """Return the index after the block that a line opens: the deeper lines, and the line with its closing bracket."""
    indent, end = len(lines[start]) - len(lines[start].lstrip()), start + 1
    opened = braced = False  # A head of several lines ends with brackets at its own indent.
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth <= indent:
            closes = line.strip()[0] in "})]"
            if not closes or (opened and not braced):
                break
            end = number + 1
            if line.strip().rstrip(";,") in ("}", "})"):
                break
            opened, braced = True, line.rstrip().endswith("{")
            continue
        end = number + 1
    return end


def place_definitions(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Replace definitions by name, and add new ones after the last. Return None if the block has other contents
    besides imports."""
    outer = _keep_outermost(find_definitions(new))
    if not outer or _has_other_lines(new, outer, old):
        return None
    changes: dict[int, _Change] = {}
    added: list[tuple[Definition, Definition | None]] = []
    for definition, owner in (part for found in outer for part in _open_partial_class(found, new, old)):
        place = _find_namesake(definition, _find_inside(owner, old))
        if place is None:
            added.append((definition, owner))
        elif place.text != (text := _fit_definition(definition, place)):
            changes[place.start] = _Change(place, [text])
    for definition, owner in added:
        _append_definition(definition, owner, old, changes)
    head = _add_imports(_list_outside(new, outer), old, changes)
    return (*(change.make_edit(old) for change in changes.values()), *head)


class _Change(NamedTuple):
    """The texts that replace a definition."""

    place: Definition
    texts: list[str]

    def make_edit(self, old: list[str]) -> tuple[str, str]:
        text = ("\n\n" if self.place.indent else "\n\n\n").join(self.texts)
        return make_edit_at(old, self.place.start, self.place.end, text)


def _find_inside(owner: Definition | None, old: list[str]) -> list[Definition]:
    """Find the definitions of a class, or all without one."""
    found = find_definitions(old)
    return [inner for inner in found if owner.start < inner.start and inner.end <= owner.end] if owner else found


def _append_definition(
    definition: Definition, owner: Definition | None, old: list[str], changes: dict[int, _Change]
) -> None:
    """Append after the last definition at the same depth, or else at the end of the class or the file."""
    inside = _find_inside(owner, old)
    indent = min((found.indent for found in inside), default=owner.indent + 4) if owner else definition.indent
    end = len(old)
    last = owner or Definition(name="", indent=indent, start=end - 1, end=end, text=old[-1])
    last = next((found for found in reversed(inside) if found.indent == indent), last)
    changes.setdefault(last.start, _Change(last, [last.text])).texts.append(_indent_like(definition, indent))


def _find_namesake(definition: Definition, present: list[Definition]) -> Definition | None:
    """Find the definition of that name; of several, the one at the same depth, then the one decorated alike."""
    alike = [found for found in present if found.name == definition.name]
    alike = [found for found in alike if found.indent == definition.indent] or alike
    if len(alike) > 1 and (marks := _list_decorators(definition)):
        alike = [found for found in alike if _list_decorators(found) == marks] or alike
    if len(alike) > 1:
        raise AmbiguousError([found.start for found in alike])
    return alike[0] if alike else None


def _list_decorators(definition: Definition) -> list[str]:
    return [line.strip() for line in takewhile(_DECORATOR.match, definition.text.split("\n"))]


def _fit_definition(definition: Definition, place: Definition) -> str:
    """Indent the text like the definition it replaces. Keep its decorators unless the new text has some."""
    text = _indent_like(definition, place.indent)
    kept = [] if _list_decorators(definition) else list(takewhile(_DECORATOR.match, place.text.split("\n")))
    return "\n".join((*kept, text))


def _open_partial_class(
    definition: Definition, new: list[str], old: list[str]
) -> list[tuple[Definition, Definition | None]]:
    """Return the methods of a class that the block repeats only in part, with that class; otherwise the definition
    unchanged."""
    there = next((found for found in find_definitions(old) if found.name == definition.name), None)
    inside = [found for found in find_definitions(new) if definition.start < found.end <= definition.end]
    inner = [found for found in inside if found.indent > definition.indent]
    kept = compute_kept_share(there.text.split("\n"), definition.text.split("\n")) if there else 0
    if there is None or not inner or kept >= WHOLE_SHARE:
        return [(definition, None)]
    return [(found, there) for found in _keep_outermost(inner)]


def _keep_outermost(found: list[Definition]) -> list[Definition]:
    kept: list[Definition] = []
    for definition in found:
        if not kept or definition.start >= kept[-1].end:
            kept.append(definition)
    return kept


def _has_other_lines(lines: list[str], outer: list[Definition], old: list[str]) -> bool:
    known = set(map(str.strip, old))
    rest = [line for line in _list_outside(lines, outer) if line.strip() not in known]
    return any(not _ANY_IMPORT.match(line) and not ELLIPSIS.match(line) for line in rest)


def _list_outside(lines: list[str], outer: list[Definition]) -> list[str]:
    inside = {number for found in outer for number in range(found.start, found.end)}
    return [line for number, line in enumerate(lines) if number not in inside and line.strip()]


def _indent_like(definition: Definition, indent: int) -> str:
    moved = indent - definition.indent
    if moved == 0:
        return definition.text
    lines = definition.text.split("\n")
    return "\n".join(" " * moved + line if moved > 0 and line.strip() else line[max(0, -moved) :] for line in lines)


def _add_imports(outside: list[str], old: list[str], changes: dict[int, _Change]) -> list[tuple[str, str]]:
    """Put new imports above the first import, or above the first definition."""
    head = [line for line in outside if _ANY_IMPORT.match(line) and line not in old]
    first = next(iter(find_definitions(old)), None) or next((change.place for change in changes.values()), None)
    if head and (there := next(filter(_ANY_IMPORT.match, old), None)):
        return [(there, "\n".join((*head, there)))]
    if head and first:
        changes.setdefault(first.start, _Change(first, [first.text])).texts.insert(0, "\n".join(head))
    return []


def make_edit_at(old: list[str], start: int, end: int, replacement: str) -> tuple[str, str]:
    """Make an edit of these lines. Its target is unique in the file, extended upwards if necessary."""
    first, text = start, "\n".join(old)
    while first > 0 and text.count("\n".join(old[first:end])) > 1:
        first -= 1
    return "\n".join(old[first:end]), "\n".join((*old[first:start], replacement))


def compute_kept_share(old: list[str], new: list[str]) -> float:
    """Compute the share of the file that the block repeats."""
    real = [line.strip() for line in old if line.strip()]
    kept = SequenceMatcher(None, real, [line.strip() for line in new if line.strip()], autojunk=False)
    return sum(match.size for match in kept.get_matching_blocks()) / max(1, len(real))


def has_ellipsis(body: str, current: str, mark: re.Pattern[str] = ELLIPSIS) -> bool:
    """Return True if dots or a comment replace omitted lines."""
    return any(mark.match(line) and line.strip() not in current for line in body.splitlines())


def append_lines(old: list[str], new: str) -> tuple[str, str]:
    return make_edit_at(old, len(old) - 1, len(old), f"{old[-1]}\n{new}")


def place_similar(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Place a changed part of the file: it replaces the lines that it mostly repeats."""
    real = [line for line in new if line.strip()]
    blocks, same = _match_lines(old, new)
    if len(real) < 3 or same < SIMILAR_SHARE * len(real):
        return None
    first, last = blocks[0], blocks[-1]
    start, end = max(0, first.a - first.b), min(len(old), last.a + last.size + len(new) - last.b - last.size)
    if first.b and old[start : first.a] and not _are_alike(old[start : first.a], new[: first.b]):
        start = first.a
    if end > last.a + last.size and not _are_alike(old[last.a + last.size : end], new[last.b + last.size :]):
        end = last.a + last.size
    others, as_many = _match_lines([*old[:start], *[""] * (end - start), *old[end:]], new)
    if as_many >= same:
        raise AmbiguousError([start, others[0].a])
    anchors = [number for number, line in enumerate(old) if line.strip() == real[0].strip()]
    if end - start > 2 * len(new) + 4 or (len(anchors) == 1 and not start <= anchors[0] < end):
        return None
    return (make_edit_at(old, start, end, "\n".join(new)),)


def _match_lines(old: list[str], new: list[str]) -> tuple[list[Match], int]:
    """Return the blocks of equal lines that are not blank, and their number of lines."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    blocks = [block for block in found if any(line.strip() for line in old[block.a : block.a + block.size])]
    return blocks, sum(block.size for block in blocks)


def _are_alike(one: list[str], other: list[str]) -> bool:
    return SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio() > 0.5
