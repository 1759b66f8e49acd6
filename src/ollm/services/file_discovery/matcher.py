"""Which rule speaks about a path: the last one that matches, as git has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ollm.services.file_discovery.expressions import NameSearch, compile_set
from ollm.services.file_discovery.rules import Rule

Names = frozenset[str] | set[str]
_GROUP = 500


class Matcher:
    """Rules in order, weakest first. Paths are bytes, from the top. Compiled when first asked, in groups: an ignore
    file of fifty thousand lines is slow but works."""

    def __init__(self, rules: Sequence[Rule], *, ignore_case: bool = False) -> None:
        self.rules = tuple(rules)
        self._ignore_case = ignore_case

    @cached_property
    def _groups(self) -> list[_Group]:
        starts = range(0, len(self.rules), _GROUP)
        return [_Group(self.rules[start : start + _GROUP], ignore_case=self._ignore_case) for start in starts]

    @cached_property
    def _glance(self) -> _Glance:
        return _Glance(self.rules, ignore_case=self._ignore_case)

    def spoken_of(self, base: str, names: Sequence[str]) -> Names:
        """Those of a directory's names that a rule may match: all that one does, and perhaps some more."""
        return self._glance.spoken_of(base, names)

    def deciding(self, path: bytes, *, directory: bool) -> Rule | None:
        """The rule that has the last word about this path itself; its parents are the caller's business."""
        found = (group.deciding(path, directory=directory) for group in reversed(self._groups))
        return next((rule for rule in found if rule is not None), None)

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.deciding(path, directory=directory)
        return rule is not None and not rule.negated


class _Glance:
    """Most rules are a name or an ending: those need no search, only the others do."""

    def __init__(self, rules: Sequence[Rule], *, ignore_case: bool) -> None:
        plain = [rule for rule in rules if rule.name or rule.ending] if not ignore_case else []
        others = [rule.expression for rule in rules if ignore_case or not (rule.name or rule.ending)]
        self._names = frozenset(rule.name for rule in plain if rule.name)
        self._endings = tuple({rule.ending for rule in plain if rule.ending})
        self._searches = [
            NameSearch(others[start : start + _GROUP], ignore_case=ignore_case)
            for start in range(0, len(others), _GROUP)
        ]

    def spoken_of(self, base: str, names: Sequence[str]) -> Names:
        found: Names = self._names.intersection(names)
        if self._endings:
            found = found.union([name for name in names if name.endswith(self._endings)])
        for search in self._searches:
            found = found.union(search.among(base, names))
        return found


class _Group:
    """Some rules, as one set that tells them apart."""

    def __init__(self, rules: Sequence[Rule], *, ignore_case: bool) -> None:
        self._rules = rules
        self._ignore_case = ignore_case

    @cached_property
    def _each(self) -> Any:
        return compile_set([rule.expression for rule in self._rules], ignore_case=self._ignore_case)

    def deciding(self, path: bytes, *, directory: bool) -> Rule | None:
        numbers: list[int] = self._each.Match(path) or []
        for number in sorted(numbers, reverse=True):
            rule = self._rules[number]
            if directory or not rule.only_directories:
                return rule
        return None
