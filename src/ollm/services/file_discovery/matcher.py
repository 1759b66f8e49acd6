"""Which rule speaks about a path: the last one that matches, as git has it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ollm.services.file_discovery.expressions import NameSearch
    from ollm.services.file_discovery.rules import IgnoreRule

    Names = frozenset[str] | set[str]

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
        found = (group.find_deciding_rule(path, directory=directory) for group in reversed(self._get_groups()))
        return next((rule for rule in found if rule is not None), None)

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
        from operator import itemgetter

        self._cut = itemgetter(slice(-min(map(len, endings)), None))
        self._tails = frozenset(map(self._cut, endings))

    def may_hold(self, names: Sequence[str]) -> bool:
        """Whether one of the names may end so."""
        return not self._tails.isdisjoint(map(self._cut, names))


def _make_searches(expressions: Sequence[bytes], *, ignore_case: bool) -> list[NameSearch]:
    from ollm.services.file_discovery.expressions import NameSearch

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
        likely += [number for beginning, number in self._begun if name.startswith(beginning)]
        found = [number for number in likely if _matches(self._rules[number], path)]
        if self._others:
            found += [self._others[place] for place in self._get_set().Match(path) or ()]
        return found

    def _get_set(self) -> Any:
        if self._set is None:
            from ollm.services.file_discovery.expressions import compile_set

            expressions = [self._rules[number].expression for number in self._others]
            self._set = compile_set(expressions, ignore_case=self._ignore_case)
        return self._set


def is_plain(rule: IgnoreRule) -> bool:
    """Whether a name tells already that the rule does not match."""
    return bool(rule.names or rule.beginnings or rule.endings)


def _matches(rule: IgnoreRule, path: bytes) -> bool:
    """Whether a rule matches a path that has its name, beginning or ending."""
    if rule.anywhere:
        return not rule.base or path.startswith(rule.base + b"/")
    from ollm.services.file_discovery.expressions import compile_bytes

    return compile_bytes(rule.expression).fullmatch(path) is not None
