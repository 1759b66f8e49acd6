"""Places the parts of a block in a file: functions and classes by name, lines by name, similarity or heading.

Pure: lines in, pairs of target and replacement out.
"""

from __future__ import annotations

import re
from difflib import Match, SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from ollm.domain.struct import Data

SIMILAR_LINE = 0.65  # how like a line must be that a single one takes the place of
NEXT_LINE = 0.15  # how much less the next line must be like it
SIMILAR_SHARE = 0.5  # of a block's lines that are in the file, for it to be a changed part of it
MAX_TOLD_PLACES = 6
MAX_DEFINITION_LINES = 45  # of one that is shown whole in a long file
KEY_LINES = 8  # a block of so few lines may be taken for lines that take the place of others
ELLIPSIS = re.compile(
    r"^\s*(?:\.\.\.|…)\s*$|^\s*(?:#|//|\{?/\*|--|<!--|;|%)\s*[\[(<]?"
    r"(?:\.\.\.|…|.*?\b(?:existing|rest of|unchanged|remain|same as))",
    re.IGNORECASE,
)
_OPENS = re.compile(r"[{\[(]\s*$")
_IMPORT = re.compile(r"^(?:import|from)\s+\w")
_CONSTANT = re.compile(r"^[A-Z][A-Z\d_]*\s*=")
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$")
_VALUE_KEY = re.compile(r"^([A-Za-z_][\w.-]*)\s*[:=]\s*\S")
_KEY = re.compile(r"^\s*(?:export\s+|const\s+|let\s+|var\s+|-\s+)?[\"']?([A-Za-z_][\w.-]*)[\"']?\s*(?:[:=]|$)")
WHOLE_SHARE = 0.6  # of a file's lines that a block must hold to be taken for all of it
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:export\s+|default\s+|public\s+|private\s+|static\s+|async\s+|pub\s+)*"
    r"(?:def|class|function\*?|func|fn|interface|struct|impl|trait|type)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_DOCSTRING = re.compile(r"^(?:\"{3}|'{3}).*(?:\"{3}|'{3})$")
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
        last = _find_definition_end(lines, number, indent)
        if last == number + 1 and line.rstrip().endswith((":", "{")):
            continue  # only its head
        text = "\n".join(lines[first:last])
        found.append(Definition(name=named["name"], indent=indent, start=first, end=last, text=text))
    return found


def list_defined_names(text: str) -> set[str]:
    """Return the names of all functions and classes in a text."""
    return {found.name for found in find_definitions(text.splitlines())}


def _find_definition_end(lines: list[str], start: int, indent: int) -> int:
    end = start + 1
    opened = braced = False  # a head of several lines ends with a line of brackets as far left as the head
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
    present = find_definitions(old)
    changes: dict[int, _Change] = {}
    added: list[Definition] = []
    for definition, owner in (part for found in outer for part in _open_partial_class(found, new, old)):
        if owner:
            _place_member(definition, owner, old, changes)
            continue
        place = _find_namesake(definition, present)
        if place is None:
            added.append(definition)
        elif place.text != (text := _fit_definition(definition, place)):
            before = [found.text for found in added if found.indent == place.indent]
            added = [found for found in added if found.indent != place.indent]
            changes[place.start] = _Change(place, [*before, text])
    if added:
        _append_definitions(added, old, changes)
    head = _add_head(_list_outside(new, outer), old, changes)
    return (*(change.make_edit(old) for change in changes.values()), *head)


class _Change(NamedTuple):
    """The texts that replace a definition."""

    place: Definition
    texts: list[str]

    def make_edit(self, old: list[str]) -> tuple[str, str]:
        text = ("\n\n" if self.place.indent else "\n\n\n").join(self.texts)
        return make_edit_at(old, self.place.start, self.place.end, text)


def _place_member(member: Definition, owner: Definition, old: list[str], changes: dict[int, _Change]) -> None:
    """Replace the method of the same name in its own class, or append it to that class."""
    inside = [found for found in find_definitions(old) if owner.start < found.start and found.end <= owner.end]
    members = [found for found in inside if found.indent == min(inner.indent for inner in inside)]
    place = _find_namesake(member, inside)
    if place:
        if place.text != (text := _fit_definition(member, place)):
            changes[place.start] = _Change(
                place, [*changes[place.start].texts[:-1], text] if place.start in changes else [text]
            )
    elif members:
        last = members[-1]
        changes.setdefault(last.start, _Change(last, [last.text])).texts.append(_indent_like(member, last.indent))
    else:
        closed = old[owner.end - 1].strip()[:1] in ("}", ")")
        text = _indent_like(member, owner.indent + 4)
        body = (changes[owner.start].texts[0] if owner.start in changes else owner.text).split("\n")
        lines = [*body[:-1], text, body[-1]] if closed else [*body, "", text]
        whole = "\n".join(lines)
        changes[owner.start] = _Change(owner, [whole])


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
    inner = [
        found for found in find_definitions(new) if definition.start < found.end <= definition.end and found.indent
    ]
    inner = [found for found in inner if found.indent > definition.indent]
    if there is None or not inner:
        return [(definition, None)]
    if compute_kept_share(there.text.split("\n"), definition.text.split("\n")) >= WHOLE_SHARE:
        return [(definition, None)]
    return [(found, there) for found in _keep_outermost(inner)]


def _keep_outermost(found: list[Definition]) -> list[Definition]:
    kept: list[Definition] = []
    for definition in found:
        if not kept or definition.start >= kept[-1].end:
            kept.append(definition)
    return kept


def _has_other_lines(lines: list[str], outer: list[Definition], old: list[str]) -> bool:
    known = {_strip_quotes(line) for line in old}
    rest = [line for line in _list_outside(lines, outer) if _strip_quotes(line) not in known]
    return any(not _ANY_IMPORT.match(line) and not ELLIPSIS.match(line) and not _DOCSTRING.match(line) for line in rest)


def _list_outside(lines: list[str], outer: list[Definition]) -> list[str]:
    inside = {number for found in outer for number in range(found.start, found.end)}
    return [line for number, line in enumerate(lines) if number not in inside and line.strip()]


def _strip_quotes(line: str) -> str:
    return line.replace('"', "'").strip()


def _indent_like(definition: Definition, indent: int) -> str:
    moved = indent - definition.indent
    if moved == 0:
        return definition.text
    lines = definition.text.split("\n")
    return "\n".join(" " * moved + line if moved > 0 and line.strip() else line[max(0, -moved) :] for line in lines)


def _append_definitions(added: list[Definition], old: list[str], changes: dict[int, _Change]) -> None:
    """Append after the last definition at the same depth, or at the end of the file."""
    indent = added[0].indent
    texts = [definition.text for definition in added]
    alike = [found for found in find_definitions(old) if found.indent == indent]
    end = len(old)
    last = alike[-1] if alike else Definition(name="", indent=indent, start=end - 1, end=end, text=old[-1])
    changes.setdefault(last.start, _Change(last, [last.text])).texts.extend(texts)


def _add_head(outside: list[str], old: list[str], changes: dict[int, _Change]) -> list[tuple[str, str]]:
    """Replace the file's docstring. Put a first docstring and new imports above the first import, or above the first
    definition."""
    head = [line for line in outside if _DOCSTRING.match(line) and line not in old]
    edits = [make_edit_at(old, 0, 1, head.pop(0))] if head and _DOCSTRING.match(old[0]) else []
    head += [line for line in outside if _ANY_IMPORT.match(line) and line not in old]
    imports = [line for line in old if _ANY_IMPORT.match(line)]
    first = next(iter(find_definitions(old)), None) or next((change.place for change in changes.values()), None)
    if head and imports:
        edits.append((imports[0], "\n".join((*head, imports[0]))))
    elif head and first:
        changes.setdefault(first.start, _Change(first, [first.text])).texts.insert(0, "\n".join(head))
    return edits


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


def place_added_lines(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Add lines that are new to the file after the last line of their kind."""
    lines = [line for line in new if line.strip()]
    known = set(map(str.strip, old))
    if not lines or lines[0][:1].isspace() or any(line.strip() in known for line in lines):
        return None
    keys = {found[1] for line in old if (found := _VALUE_KEY.match(line))}
    if any((found := _VALUE_KEY.match(line)) and found[1] in keys for line in lines):
        return None  # it sets anew what is set there
    kind = _IMPORT if all(map(_IMPORT.match, lines)) else _CONSTANT if all(map(_CONSTANT.match, lines)) else None
    places = [number for number, line in enumerate(old) if kind and kind.match(line)]
    if kind is _IMPORT and not places and (definitions := find_definitions(old)):
        first = definitions[0].start
        return (make_edit_at(old, first, first + 1, "\n".join((*lines, "", "", old[first]))),)
    if not places:
        return (append_lines(old, "\n".join(new)),)
    place = places[-1]
    return (make_edit_at(old, place, place + 1, "\n".join((old[place], *lines))),)


def place_section(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Replace the section of a page under the same heading, or append a new one."""
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


def place_keyed_lines(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Replace the only lines that set the same names with a few lines `NAME = value`."""
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
        indent = found[: len(found) - len(found.lstrip())]
        edits.append(make_edit_at(old, there[0], there[0] + 1, indent + line.strip()))
    return tuple(edits) or None


def place_block(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Replace a block of the file with a new one that has the same opening line: `"name": {` up to its closing
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
    """Return the index of a line that occurs exactly once, or None."""
    found = [number for number, other in enumerate(lines) if other.strip() == line.strip()]
    return found[0] if len(found) == 1 else None


def find_block_end(start: int, lines: list[str]) -> int:
    """Return the index after the last line deeper than the first, and after the bracket that closes it."""
    depth = count_indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or count_indent(lines[end]) > depth):
        end += 1
    closes = end < len(lines) and lines[end].strip()[:1] in ("}", "]", ")")
    return end + closes


def count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


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
    anchor = find_only_line(real[0], old)
    if end - start > 2 * len(new) + 4 or (anchor is not None and not start <= anchor < end):
        return None
    return (make_edit_at(old, start, end, "\n".join(new)),)


def _match_lines(old: list[str], new: list[str]) -> tuple[list[Match], int]:
    """Return the blocks of equal lines that are not blank, and their number of lines."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    blocks = [block for block in found if any(line.strip() for line in old[block.a : block.a + block.size])]
    return blocks, sum(block.size for block in blocks)


def place_similar_line(new: list[str], old: list[str]) -> tuple[tuple[str, str], ...] | None:
    """Replace the only line that is similar to the new one."""
    lines = [line for line in new if line.strip()]
    if len(lines) != 1:
        return None
    ratios = {n: SequenceMatcher(None, line.strip(), lines[0].strip()).ratio() for n, line in enumerate(old)}
    like = {place: ratio for place, ratio in ratios.items() if ratio >= SIMILAR_LINE}
    best = max(like.values(), default=0.0)
    near = [place for place, ratio in like.items() if ratio > best - NEXT_LINE]
    if len(near) != 1:
        return None
    place = near[0]
    indent = old[place][: len(old[place]) - len(old[place].lstrip())]
    return (make_edit_at(old, place, place + 1, indent + lines[0].strip()),)


def _are_alike(one: list[str], other: list[str]) -> bool:
    return SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio() > 0.5
