"""Ignore rules, read and applied as git does: the last rule that matches a path decides.

Lines that cannot be used are reported (D624).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

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

Names = frozenset[str] | set[str]

_MAX_FILE_BYTES = 4 << 20
_MAX_PATTERN_BYTES = 4096
_ANYWHERE = rb"(?:[^\x00]*/)?"


class IgnoreRule:
    """One line of an ignore file. `expression` is for paths from the root of the walk; a path that it matches has one
    of the `names`, or a name that begins or ends with one of `beginnings` or `endings`, where there are any."""

    __slots__ = (
        "anywhere", "base", "beginnings", "endings", "expression", "line", "names", "negated", "only_directories",
        "source", "text",
    )  # fmt: skip

    def __init__(
        self,
        *,
        expression: bytes,
        negated: bool,
        only_directories: bool,
        text: str,
        base: bytes,
        source: str,
        line: int,
        names: tuple[str, ...] = (),
        beginnings: tuple[str, ...] = (),
        endings: tuple[str, ...] = (),
        anywhere: bool = False,
    ) -> None:
        self.expression, self.negated, self.only_directories = expression, negated, only_directories
        self.text, self.base, self.source, self.line = text, base, source, line
        self.names, self.beginnings, self.endings, self.anywhere = names, beginnings, endings, anywhere


class BadIgnoreRule:
    """A line that was skipped, where it is and why."""

    __slots__ = ("line", "reason", "source", "text")

    def __init__(self, *, text: str, source: str, line: int, reason: str) -> None:
        self.text, self.source, self.line, self.reason = text, source, line, reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BadIgnoreRule) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    @property
    def _fields(self) -> tuple[str, int, str, str]:
        return self.source, self.line, self.text, self.reason


class IgnoreFile:
    """Rules of one ignore file."""

    __slots__ = ("bad", "rules")

    def __init__(self, rules: tuple[IgnoreRule, ...] = (), bad: tuple[BadIgnoreRule, ...] = ()) -> None:
        self.rules, self.bad = rules, bad


def read_ignore_file(path: str, base: bytes | None, source: str | None = None) -> IgnoreFile:
    """The rules of an ignore file that is in `base` (a path from the root of the walk, b"" for the root itself).
    A missing, unreadable, special or huge file has none."""
    content = _read_content(path)
    return parse_ignore_rules(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), base or b"", source or path)


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
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    only_directories = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_directories else pattern
    if not pattern:
        raise BadPattern("it matches nothing")
    if len(pattern) > _MAX_PATTERN_BYTES:
        raise BadPattern("it is longer than a path can be")
    start = escape_literal(base) + b"/" if base else b""
    return IgnoreRule(
        expression=start
        + (
            translate_pattern(pattern.removeprefix(b"/")) if b"/" in pattern else _ANYWHERE + translate_pattern(pattern)
        ),
        negated=negated,
        only_directories=only_directories,
        text=text,
        base=base,
        source=source,
        line=number,
        anywhere=b"/" not in pattern,
        **_find_name_hints(pattern),
    )


def _find_name_hints(pattern: bytes) -> dict[str, tuple[str, ...]]:
    """Find facts about the names a pattern matches, without looking at the whole path."""
    above, _, last = pattern.rpartition(b"/")
    if b"[" in above:  # the slash may stand in a set
        return {}
    if last and _is_literal(last):
        return {"names": (os.fsdecode(last),)}
    names = expand_sets(last)
    if all(name and _is_literal(name) for name in names):
        return {"names": _decode_all(names)}
    if all(name[:1] == b"*" and len(name) > 1 and _is_literal(name[1:]) for name in names):
        return {"endings": _decode_all([name[1:] for name in names])}
    if all(name[-1:] == b"*" and len(name) > 1 and _is_literal(name[:-1]) for name in names):
        return {"beginnings": _decode_all([name[:-1] for name in names])}
    return {}


def _is_literal(text: bytes) -> bool:
    return measure_literal(text) == len(text)


def _decode_all(names: list[bytes]) -> tuple[str, ...]:
    return tuple([os.fsdecode(name) for name in names])


def _strip_trailing_spaces(line: bytes) -> bytes:
    """As git does it: spaces at the end go, unless a backslash keeps them."""
    end = keep = 0
    while end < len(line):
        if line[end] == 0x5C:
            if end + 1 == len(line):
                return line
            end += 2
            keep = end
        else:
            end += 1
            keep = end if line[end - 1] != 0x20 else keep
    return line[:keep]


_MAX_GROUP_RULES = 500
_MAX_SOUGHT_ENDINGS = 6  # endings that are looked for one by one; with more of them tails take less time


class Matcher:
    """Rules in order, weakest first. Paths are bytes, from the top. Compiled when first asked, in groups: an ignore
    file of fifty thousand lines is slow but works."""

    def __init__(self, rules: Sequence[IgnoreRule], *, ignore_case: bool = False) -> None:
        self.rules = tuple(rules)
        self._ignore_case = ignore_case
        self._groups: list[_RuleGroup] | None = None
        self._quick_matcher: _QuickMatcher | None = None

    def find_candidates(self, base: str, names: Sequence[str]) -> Names:
        """Those of a directory's names that a rule may match: all that one does, and perhaps some more."""
        if self._quick_matcher is None:
            self._quick_matcher = _QuickMatcher(self.rules, ignore_case=self._ignore_case)
        return self._quick_matcher.find_candidates(base, names)

    def find_deciding_rule(self, path: bytes, *, directory: bool) -> IgnoreRule | None:
        """The rule that has the last word about this path itself; its parents are the caller's business."""
        for group in reversed(self._get_groups()):
            rule = group.find_deciding_rule(path, directory=directory)
            if rule is not None:
                return rule
        return None

    def _get_groups(self) -> list[_RuleGroup]:
        if self._groups is None:
            starts = range(0, len(self.rules), _MAX_GROUP_RULES)
            self._groups = [
                _RuleGroup(self.rules[start : start + _MAX_GROUP_RULES], ignore_case=self._ignore_case)
                for start in starts
            ]
        return self._groups

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.find_deciding_rule(path, directory=directory)
        return rule is not None and not rule.negated


class _QuickMatcher:
    """Most rules are a name, its beginning or its ending: those need no search, only the others do. Nearly always a
    directory holds nothing of the kind, and that is soon told."""

    def __init__(self, rules: Sequence[IgnoreRule], *, ignore_case: bool) -> None:
        plain = [rule for rule in rules if is_plain(rule)] if not ignore_case else []
        others = [rule.expression for rule in rules if ignore_case or not is_plain(rule)]
        self._names = frozenset([name for rule in plain for name in rule.names])
        self._endings = tuple({ending for rule in plain for ending in rule.endings})
        self._ended = tuple(ending + "\0" for ending in self._endings)
        self._tails = _NameTails(self._endings) if len(self._endings) > _MAX_SOUGHT_ENDINGS else None
        self._beginnings = tuple({beginning for rule in plain for beginning in rule.beginnings})
        self._begun = tuple("\0" + beginning for beginning in self._beginnings)
        self._searches = _make_searches(others, ignore_case=ignore_case) if others else []

    def find_candidates(self, base: str, names: Sequence[str]) -> Names:
        found: Names = self._names.intersection(names)
        if self._endings and self._may_end_so(names):
            found = found.union([name for name in names if name.endswith(self._endings)])
        if self._beginnings:
            together = "\0" + "\0".join(names)
            if any([beginning in together for beginning in self._begun]):  # noqa: C419 - a list is faster for so few
                found = found.union([name for name in names if name.startswith(self._beginnings)])
        for search in self._searches:
            found = found.union(search.find_matches(base, names))
        return found

    def _may_end_so(self, names: Sequence[str]) -> bool:
        if self._tails is not None:
            return self._tails.may_hold(names)
        together = "\0".join(names) + "\0"
        return any([ending in together for ending in self._ended])  # noqa: C419 - likewise


class _NameTails:
    """The last letters of many endings, as many of each as the shortest has."""

    def __init__(self, endings: Sequence[str]) -> None:
        self._cut = itemgetter(slice(-min(map(len, endings)), None))
        self._tails = frozenset(map(self._cut, endings))

    def may_hold(self, names: Sequence[str]) -> bool:
        """Return True if one of the names may end this way."""
        return not self._tails.isdisjoint(map(self._cut, names))


def _make_searches(expressions: Sequence[bytes], *, ignore_case: bool) -> list[NameSearch]:
    return [
        NameSearch(expressions[start : start + _MAX_GROUP_RULES], ignore_case=ignore_case)
        for start in range(0, len(expressions), _MAX_GROUP_RULES)
    ]


class _RuleGroup:
    """Some rules. Plain ones are found by the name they tell; the others are one set that tells them apart."""

    def __init__(self, rules: Sequence[IgnoreRule], *, ignore_case: bool) -> None:
        self._rules = rules
        self._ignore_case = ignore_case
        self._named: dict[str, list[int]] = {}
        self._ended: list[tuple[str, int]] = []
        self._begun: list[tuple[str, int]] = []
        self._others: list[int] = []
        self._set: Any = None
        for number, rule in enumerate(rules):
            if ignore_case or not is_plain(rule):
                self._others.append(number)
                continue
            for name in rule.names:
                self._named.setdefault(name, []).append(number)
            self._ended += [(ending, number) for ending in rule.endings]
            self._begun += [(beginning, number) for beginning in rule.beginnings]

    def find_deciding_rule(self, path: bytes, *, directory: bool) -> IgnoreRule | None:
        for number in sorted(self._find_matching(path), reverse=True):
            rule = self._rules[number]
            if directory or not rule.only_directories:
                return rule
        return None

    def _find_matching(self, path: bytes) -> list[int]:
        name = os.fsdecode(path.rpartition(b"/")[2])
        likely = self._named.get(name, []) + [number for ending, number in self._ended if name.endswith(ending)]
        if self._begun:
            likely += [number for beginning, number in self._begun if name.startswith(beginning)]
        rules = self._rules
        found = [number for number in likely if _matches(rules[number], path)]
        if self._others:
            found += [self._others[place] for place in self._get_set().Match(path) or ()]
        return found

    def _get_set(self) -> Any:
        if self._set is None:
            expressions = [self._rules[number].expression for number in self._others]
            self._set = compile_set(expressions, ignore_case=self._ignore_case)
        return self._set


def is_plain(rule: IgnoreRule) -> bool:
    """Return True if the name alone shows that the rule does not match."""
    return bool(rule.names or rule.beginnings or rule.endings)


def _matches(rule: IgnoreRule, path: bytes) -> bool:
    """Match a rule against a path that has its name, beginning or ending."""
    if rule.anywhere:
        return not rule.base or path.startswith(rule.base + b"/")
    return compile_bytes(rule.expression).fullmatch(path) is not None
