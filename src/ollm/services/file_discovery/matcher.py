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

    def spoken_of(self, base: str, names: Sequence[str]) -> Names:
        """Those of a directory's names that any rule matches at all."""
        if len(self._groups) == 1:
            return self._groups[0].spoken_of(base, names)
        return frozenset[str]().union(*(group.spoken_of(base, names) for group in self._groups))

    def deciding(self, path: bytes, *, directory: bool) -> Rule | None:
        """The rule that has the last word about this path itself; its parents are the caller's business."""
        found = (group.deciding(path, directory=directory) for group in reversed(self._groups))
        return next((rule for rule in found if rule is not None), None)

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.deciding(path, directory=directory)
        return rule is not None and not rule.negated


class _Group:
    """Some rules, as one expression to find names with and one set to tell the rules apart."""

    def __init__(self, rules: Sequence[Rule], *, ignore_case: bool) -> None:
        self._rules = rules
        self._ignore_case = ignore_case

    @cached_property
    def _any(self) -> NameSearch:
        return NameSearch([rule.expression for rule in self._rules], ignore_case=self._ignore_case)

    @cached_property
    def _each(self) -> Any:
        return compile_set([rule.expression for rule in self._rules], ignore_case=self._ignore_case)

    def spoken_of(self, base: str, names: Sequence[str]) -> Names:
        return self._any.among(base, names)

    def deciding(self, path: bytes, *, directory: bool) -> Rule | None:
        numbers: list[int] = self._each.Match(path) or []
        for number in sorted(numbers, reverse=True):
            rule = self._rules[number]
            if directory or not rule.only_directories:
                return rule
        return None
