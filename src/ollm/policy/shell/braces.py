"""Brace expansion over decoded characters: `{a,b}` and `{1..3}`, only where the braces are not quoted."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

AtomKind = Literal["plain", "quoted", "value", "unknown", "several", "split", "guess"]
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?|([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d{1,9}))?")
_MAX_WORDS = 1024


class Atom(NamedTuple):
    """One character of a word and how it came about: a `value` is a variable's, sure and open to globbing; unknown
    ones hold no character, `several` neither, and blanks in what it turns out to be make more than one word of it; a
    guess holds a likely one."""

    character: str
    kind: AtomKind


def expand_braces(atoms: list[Atom]) -> list[list[Atom]]:
    """Every word the braces stand for, in order. Past a thousand words the rest is left out and the last one marked
    unknown, so that nothing is allowed on the strength of a list that was cut."""
    done: list[list[Atom]] = []
    waiting = [atoms]
    while waiting:
        current = waiting.pop()
        found = _find_group(current)
        if found is None:
            done.append(current)
            continue
        start, end, choices = found
        waiting += [current[:start] + choice + current[end:] for choice in reversed(choices)]
        if len(done) + len(waiting) > _MAX_WORDS:
            marker = Atom("", "unknown")
            return [[*one, marker] for one in (*done, *reversed(waiting))][:_MAX_WORDS]
    return done


def _find_group(atoms: list[Atom]) -> tuple[int, int, list[list[Atom]]] | None:
    """The first brace group: where it starts, where it ends, and its choices."""
    for start, atom in enumerate(atoms):
        if atom.kind == "plain" and atom.character == "{":
            found = _parse_choices(atoms, start)
            if found is not None:
                return start, found[0], found[1]
    return None


def _parse_choices(atoms: list[Atom], start: int) -> tuple[int, list[list[Atom]]] | None:
    depth, last = 0, start + 1
    choices: list[list[Atom]] = []
    for index in range(start, len(atoms)):
        if atoms[index].kind != "plain":
            continue
        character = atoms[index].character
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                inner = atoms[last:index]
                if choices:
                    return index + 1, [*choices, inner]
                ranged = _expand_range(inner)
                return (index + 1, ranged) if ranged else None
        elif character == "," and depth == 1:
            choices.append(atoms[last:index])
            last = index + 1
    return None


def _expand_range(inner: list[Atom]) -> list[list[Atom]] | None:
    match = _RANGE.fullmatch("".join(atom.character for atom in inner))
    if match is None or any(atom.kind != "plain" for atom in inner):
        return None
    read, write, groups = (int, str, (1, 2, 3)) if match.group(1) is not None else (ord, chr, (4, 5, 6))
    begin, end, gap = match.group(*groups)
    first, last, step = read(begin), read(end), abs(int(gap or 1)) or 1
    numbers = range(first, last + (1 if last >= first else -1), step if last >= first else -step)[: _MAX_WORDS + 1]
    texts = map(write, numbers)
    return [[Atom(character, "plain") for character in text] for text in texts]
