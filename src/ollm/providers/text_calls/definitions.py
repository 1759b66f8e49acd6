"""Functions and classes of a text, and those of a block in the place of their namesakes."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import SequenceMatcher
from typing import NamedTuple

from ollm.domain.struct import Data
from ollm.providers.text_calls.line_edits import ELLIPSIS, REMOVED, compute_kept_share, make_edit_at

WHOLE_SHARE = 0.6  # of a file's lines that a block must hold to be taken for all of it
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:export\s+|default\s+|public\s+|private\s+|static\s+|async\s+|pub\s+)*"
    r"(?:def|class|function\*?|func|fn|interface|struct|impl|trait|type)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
)
_DOCSTRING = re.compile(r"^(?:\"{3}|'{3}).*(?:\"{3}|'{3})$")
_DECORATOR = re.compile(r"^[ \t]*@\w")
_IMPORT = re.compile(r"^(?:import|from|const \w+ = require|use|#include)\b")


class Definition(Data, frozen=True):
    """A function or class in a text, with what decorates it; `start` and `end` count lines."""

    name: str
    indent: int
    start: int
    end: int
    text: str


def find_definitions(lines: list[str]) -> list[Definition]:
    """Functions and classes, outer ones and those in them. One ends where a line is as far left again."""
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
    """The names of all functions and classes in a text."""
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
    """Definitions take the place of those with their names; new ones come behind the last. None when the block holds
    other things besides imports."""
    outer = _keep_outermost(find_definitions(new))
    if not outer or _has_other_lines(new, outer, old):
        return None
    present = {(found.name, found.indent): found for found in find_definitions(old)}
    by_name = {found.name: found for found in present.values()}
    changes: dict[int, _Change] = {}
    added: list[Definition] = []
    for definition, owner in (part for found in outer for part in _open_partial_class(found, new, old)):
        if owner:
            _place_member(definition, owner, old, changes)
            continue
        place = present.get((definition.name, definition.indent)) or by_name.get(definition.name)
        place = place or _find_renamed(definition, list(present.values()))
        if place is None:
            added.append(definition)
        elif place.text != (text := _indent_like(definition, place.indent)):
            before = [found.text for found in added if found.indent == place.indent]
            added = [found for found in added if found.indent != place.indent]
            changes[place.start] = _Change(place, [*before, text])
    if added:
        _append_definitions(added, old, changes)
    return (*(change.make_edit(old) for change in changes.values()), *_add_imports(new, outer, old))


class _Change(NamedTuple):
    """The texts that take the place of a definition."""

    place: Definition
    texts: list[str]

    def make_edit(self, old: list[str]) -> tuple[str, str]:
        return make_edit_at(old, self.place.start, self.place.end, _join_definitions(self.texts, self.place.indent))


def _place_member(member: Definition, owner: Definition, old: list[str], changes: dict[int, _Change]) -> None:
    """A method takes the place of its namesake in its own class, or comes at the end of that."""
    inside = [found for found in find_definitions(old) if owner.start < found.start and found.end <= owner.end]
    members = [found for found in inside if found.indent == min(inner.indent for inner in inside)]
    place = next((found for found in inside if found.name == member.name), None) or _find_renamed(member, members)
    if place:
        if place.text != (text := _indent_like(member, place.indent)):
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


def _find_renamed(definition: Definition, present: list[Definition]) -> Definition | None:
    """The definition that differs from this one in its name alone; of several the one with the nearest name."""

    def rename(text: str, name: str) -> str:
        return re.sub(rf"\b{re.escape(name)}\b", "\0", text)

    wanted = rename(definition.text, definition.name)
    alike = [found for found in present if rename(found.text, found.name) == wanted]
    return max(alike, key=lambda found: SequenceMatcher(None, found.name, definition.name).ratio(), default=None)


def _open_partial_class(
    definition: Definition, new: list[str], old: list[str]
) -> list[tuple[Definition, Definition | None]]:
    """The methods of a class of which the block repeats only a few, with that class; otherwise the definition as it
    is."""
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
    inside = {number for found in outer for number in range(found.start, found.end)}
    known = {_strip_quotes(line) for line in old}
    rest = [
        line
        for number, line in enumerate(lines)
        if number not in inside and line.strip() and _strip_quotes(line) not in known
    ]
    return any(not _IMPORT.match(line) and not ELLIPSIS.match(line) and not _DOCSTRING.match(line) for line in rest)


def _strip_quotes(line: str) -> str:
    return line.replace('"', "'").strip()


def _indent_like(definition: Definition, indent: int) -> str:
    moved = indent - definition.indent
    if moved == 0:
        return definition.text
    lines = definition.text.split("\n")
    return "\n".join(" " * moved + line if moved > 0 and line.strip() else line[max(0, -moved) :] for line in lines)


def _append_definitions(added: list[Definition], old: list[str], changes: dict[int, _Change]) -> None:
    """Behind the last definition that is as deep, or at the end of the file."""
    indent = added[0].indent
    texts = [definition.text for definition in added]
    alike = [found for found in find_definitions(old) if found.indent == indent]
    end = len(old)
    last = alike[-1] if alike else Definition(name="", indent=indent, start=end - 1, end=end, text=old[-1])
    changes.setdefault(last.start, _Change(last, [last.text])).texts.extend(texts)


def _join_definitions(texts: list[str], indent: int) -> str:
    return ("\n\n" if indent else "\n\n\n").join(texts)


def _add_imports(new: list[str], outer: list[Definition], old: list[str]) -> list[tuple[str, str]]:
    head = [line for line in new[: outer[0].start] if _IMPORT.match(line) and line not in old]
    imports = [line for line in old if _IMPORT.match(line)]
    if not head or not imports:
        return []
    return [(imports[0], "\n".join((*head, imports[0])))]


def remove_definitions(body: str, current: str, removed: Collection[str]) -> tuple[tuple[str, str], ...]:
    old = current.splitlines()
    shown = list_defined_names(body)
    return tuple(
        make_edit_at(old, found.start, _skip_blank(old, found.end), REMOVED)
        for found in find_definitions(old)
        if found.name in removed and found.name in shown
    )


def _skip_blank(lines: list[str], number: int) -> int:
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number
