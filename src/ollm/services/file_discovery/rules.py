"""Ignore rules, read and applied as git does: the last rule that matches a path decides.

Lines that cannot be used are reported (D624).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

from ollm.domain.struct import Data
from ollm.services.file_discovery.patterns import (
    BadPattern,
    NameSearch,
    compile_bytes,
    compile_set,
    escape_literal,
    expand_sets,
    measure_literal,
    translate_pattern,
)

_MAX_FILE_BYTES = 4 << 20
_MAX_PATTERN_BYTES = 4096
_MAX_GROUP_RULES = 500
_ANYWHERE = rb"(?:[^\x00]*/)?"
Shape = Literal["name", "beginning", "ending"]


class IgnoreRule(Data, frozen=True, gc=False):
    """One line of an ignore file. `expression` is for paths from the top; `base` is the directory of the file. A path
    that it matches has one of the `names`, or a name that begins or ends with one of them, if the rule is that plain:
    then most names need no expression."""

    expression: bytes
    negated: bool
    only_directories: bool
    text: str
    base: bytes
    source: str
    line: int
    anywhere: bool
    shape: Shape | None = None
    names: tuple[str, ...] = ()


class BadIgnoreRule(Data, frozen=True):
    """A line that was skipped, where it is and why."""

    text: str
    source: str
    line: int
    reason: str


class IgnoreFile(Data, frozen=True):
    """Rules of one ignore file."""

    rules: tuple[IgnoreRule, ...] = ()
    bad: tuple[BadIgnoreRule, ...] = ()


def read_ignore_file(path: str, base: bytes, source: str | None = None) -> IgnoreFile:
    """Read the rules of an ignore file in the directory `base`, a path from the top (b"" for the top itself).
    A missing, unreadable, special or huge file has none."""
    content = _read_content(path)
    return parse_ignore_rules(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), base, source or path)


def _read_content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, _MAX_FILE_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse_ignore_rules(lines: Iterable[bytes], base: bytes, source: str) -> IgnoreFile:
    rules: list[IgnoreRule] = []
    bad: list[BadIgnoreRule] = []
    for number, raw in enumerate(lines, 1):
        line = _strip_trailing_spaces(raw.removesuffix(b"\r"))
        if not line or line.startswith(b"#") or b"\0" in line:
            continue
        text = os.fsdecode(line[:_MAX_PATTERN_BYTES])
        try:
            rules.append(_parse_rule(line, base, text, source, number))
        except BadPattern as error:
            bad.append(BadIgnoreRule(text=text, source=source, line=number, reason=str(error)))
    return IgnoreFile(rules=tuple(rules), bad=tuple(bad))


def _parse_rule(line: bytes, base: bytes, text: str, source: str, number: int) -> IgnoreRule:
    pattern = line.removeprefix(b"!")
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    if not pattern:
        raise BadPattern("it matches nothing")
    if len(pattern) > _MAX_PATTERN_BYTES:
        raise BadPattern("it is longer than a path can be")
    start = escape_literal(base) + b"/" if base else b""
    anywhere = b"/" not in pattern
    shape, names = _find_shape(pattern)
    return IgnoreRule(
        expression=start + (_ANYWHERE if anywhere else b"") + translate_pattern(pattern.removeprefix(b"/")),
        negated=line.startswith(b"!"),
        only_directories=only_directories,
        text=text,
        base=base,
        source=source,
        line=number,
        anywhere=anywhere,
        shape=shape,
        names=names,
    )


def _find_shape(pattern: bytes) -> tuple[Shape | None, tuple[str, ...]]:
    """Find what the names have in common that a pattern matches, without looking at the whole path."""
    above, _, last = pattern.rpartition(b"/")
    if b"[" in above or last in (b"", b"*"):  # the slash may stand in a set
        return None, ()
    names = expand_sets(last)
    for shape, cut in _CUTS.items():
        parts = [cut(name) for name in names]
        if all(measure_literal(part) == len(part) for part in parts):
            return shape, tuple(map(os.fsdecode, parts))
    return None, ()


_CUTS: dict[Shape, Callable[[bytes], bytes]] = {
    "name": lambda name: name,
    "ending": lambda name: name.removeprefix(b"*"),
    "beginning": lambda name: name.removesuffix(b"*"),
}


def _strip_trailing_spaces(line: bytes) -> bytes:
    """Strip spaces as git does: those that a backslash escapes stay."""
    stripped = line.rstrip(b" ")
    escapes = len(stripped) - len(stripped.rstrip(b"\\"))
    return line[: len(stripped) + 1] if escapes % 2 else stripped


class Matcher:
    """Rules in order, weakest first. Paths are bytes, from the top.

    Most rules are a name, its beginning or its ending: those need no search, only the others do. Nearly always a
    directory holds nothing of the kind, and that is soon told.
    """

    def __init__(self, rules: Sequence[IgnoreRule], *, ignore_case: bool = False) -> None:
        self.rules = tuple(rules)
        self._ignore_case = ignore_case
        self._by_shape: dict[Shape, dict[str, list[int]]] = {"name": {}, "beginning": {}, "ending": {}}
        self._others: list[int] = []
        for number, rule in enumerate(self.rules):
            if rule.shape is None or ignore_case:
                self._others.append(number)
                continue
            for name in rule.names:
                self._by_shape[rule.shape].setdefault(name, []).append(number)
        self._names = frozenset(self._by_shape["name"])
        self._beginnings, self._endings = tuple(self._by_shape["beginning"]), tuple(self._by_shape["ending"])
        self._marks = [f"\0{start}" for start in self._beginnings] + [f"{end}\0" for end in self._endings]

    def find_candidates(self, base: str, names: Sequence[str]) -> frozenset[str]:
        """Find the names of a directory that a rule may match: all that one does, and perhaps some more."""
        found = self._names.intersection(names)
        together = "\0" + "\0".join(names) + "\0"
        if any([mark in together for mark in self._marks]):  # noqa: C419 - a list is faster for so few
            found |= {name for name in names if name.endswith(self._endings) or name.startswith(self._beginnings)}
        for search in self._searches:
            found |= search.find_matches(base, names)
        return found

    def find_deciding_rule(self, path: bytes, *, directory: bool) -> IgnoreRule | None:
        """Find the rule that has the last word about this path itself; its parents are the caller's business."""
        for number in sorted(self._find_matching(path), reverse=True):
            rule = self.rules[number]
            if directory or not rule.only_directories:
                return rule
        return None

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.find_deciding_rule(path, directory=directory)
        return rule is not None and not rule.negated

    def _find_matching(self, path: bytes) -> list[int]:
        name, shapes = os.fsdecode(path.rpartition(b"/")[2]), self._by_shape
        likely = list(shapes["name"].get(name, ()))
        for ending in self._endings:
            if name.endswith(ending):
                likely += shapes["ending"][ending]
        for beginning in self._beginnings:
            if name.startswith(beginning):
                likely += shapes["beginning"][beginning]
        found = [number for number in likely if _matches(self.rules[number], path)]
        for start, together in enumerate(self._sets):
            found += [self._others[start * _MAX_GROUP_RULES + place] for place in together.Match(path) or ()]
        return found

    @cached_property
    def _groups(self) -> list[list[bytes]]:
        """The expressions of the rules that need a search, in groups: fifty thousand are slow but work."""
        expressions = [self.rules[number].expression for number in self._others]
        starts = range(0, len(expressions), _MAX_GROUP_RULES)
        return [expressions[start : start + _MAX_GROUP_RULES] for start in starts]

    @cached_property
    def _searches(self) -> list[NameSearch]:
        return [NameSearch(group, ignore_case=self._ignore_case) for group in self._groups]

    @cached_property
    def _sets(self) -> list[Any]:
        return [compile_set(group, ignore_case=self._ignore_case) for group in self._groups]


def _matches(rule: IgnoreRule, path: bytes) -> bool:
    """Match a rule against a path whose name has its shape."""
    if rule.anywhere:
        return not rule.base or path.startswith(rule.base + b"/")
    return compile_bytes(rule.expression).fullmatch(path) is not None
