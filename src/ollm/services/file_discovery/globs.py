"""Globs as people and models write them: `src/**/*.{ts,tsx}`, compared with paths from the root."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery.expressions import NameSearch
from ollm.services.file_discovery.wildmatch import BadPattern, translate_pattern

_MAX_ALTERNATIVES = 1000
_ANY_ENDING = re.compile(r"(?:((?:[^*?\[\]\\/]+/)*)\*\*/)?\*([^*?\[\]\\/]*)")  # `*.py`, `**/*.py`, `src/lib/**/*.py`


def translate_glob(pattern: str) -> bytes:
    """The expression for a glob: one without a slash is compared with the name at any depth, `/x` with the root's."""
    if not pattern or "\0" in pattern:
        raise ToolFailure("InvalidPattern", "A glob must not be empty or contain NUL.")
    try:
        parts = [_translate_alternative(alternative) for alternative in expand_braces(pattern)]
    except (BadPattern, UnicodeEncodeError) as error:
        raise ToolFailure("InvalidPattern", f"Invalid glob {pattern!r}: {error}.") from error
    return b"(?:" + b"|".join(parts) + b")"


def _translate_alternative(pattern: str) -> bytes:
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    prefix = b"" if "/" in pattern else rb"(?:[^\x00]*/)?"
    return prefix + translate_pattern(os.fsencode(pattern.lstrip("/")))


class EndingSearch:
    """Names that end in one of some ways anywhere below a directory: what most globs ask for."""

    def __init__(self, below: str, endings: Sequence[str]) -> None:
        self._below, self._endings = below, tuple(endings)

    def find_matches(self, base: str, names: Sequence[str]) -> set[str]:
        """`base` is the directory's path, empty or ending with `/`."""
        if base or not self._below:
            return {name for name in names if name.endswith(self._endings)} if base.startswith(self._below) else set()
        return {name for name in names if name.startswith(self._below) and name.endswith(self._endings)}


def compile_globs(patterns: Sequence[str]) -> NameSearch | EndingSearch | None:
    """A search for all of them; None when there are none."""
    if not patterns:
        return None
    expressions = [translate_glob(pattern) for pattern in patterns]
    shapes = [_ANY_ENDING.fullmatch(one.removeprefix("./")) for pattern in patterns for one in expand_braces(pattern)]
    plain = [shape.groups("") for shape in shapes if shape]
    if len(plain) == len(shapes) and len({below for below, _ in plain}) == 1:
        return EndingSearch(plain[0][0], [ending for _, ending in plain])
    return NameSearch(expressions)


def expand_braces(pattern: str) -> list[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`, nested too. A brace without a partner or a comma is a plain character."""
    found = list(islice(_iter_expansions(pattern), _MAX_ALTERNATIVES + 1))
    if len(found) > _MAX_ALTERNATIVES:
        raise BadPattern(f"its braces expand to more than {_MAX_ALTERNATIVES} patterns")
    return found


def _iter_expansions(pattern: str) -> Iterator[str]:
    group = _find_first_group(pattern)
    if group is None:
        yield pattern
        return
    start, commas, end = group
    bounds = [start, *commas, end]
    for tail in _iter_expansions(pattern[end + 1 :]):
        for left, right in pairwise(bounds):
            for middle in _iter_expansions(pattern[left + 1 : right]):
                yield pattern[:start] + middle + tail


def _find_first_group(pattern: str) -> tuple[int, list[int], int] | None:
    """Where the first `{…,…}` opens, has its own commas, and closes."""
    opened: list[tuple[int, list[int]]] = []
    found: tuple[int, list[int], int] | None = None
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "{":
            opened.append((at, []))
        elif character == "," and opened:
            opened[-1][1].append(at)
        elif character == "}" and opened:
            start, commas = opened.pop()
            if commas and (found is None or start < found[0]):
                found = (start, commas, at)
        at += 1
    return found
