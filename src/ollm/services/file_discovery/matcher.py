"""Which rule speaks about a path: the last one that matches, as git has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ollm.services.file_discovery.expressions import compile_for_names, compile_set, matching
from ollm.services.file_discovery.rules import Rule


class Matcher:
    """Rules in order, weakest first. Paths are bytes, from the root of the walk. Compiled when first asked."""

    def __init__(self, rules: Sequence[Rule], *, ignore_case: bool = False) -> None:
        self.rules = tuple(rules)
        self._ignore_case = ignore_case

    @cached_property
    def _any(self) -> Any:
        return compile_for_names([rule.expression for rule in self.rules], ignore_case=self._ignore_case)

    @cached_property
    def _each(self) -> Any:
        return compile_set([rule.expression for rule in self.rules], ignore_case=self._ignore_case)

    def spoken_of(self, base: bytes, names: Sequence[str]) -> frozenset[str] | set[str]:
        """Those of a directory's names that any rule matches at all."""
        return matching(self._any, base, names)

    def deciding(self, path: bytes, *, directory: bool) -> Rule | None:
        """The rule that has the last word about this path itself; its parents are the caller's business."""
        if not self.rules:
            return None
        numbers: list[int] = self._each.Match(path) or []
        for number in sorted(numbers, reverse=True):
            rule = self.rules[number]
            if directory or not rule.only_directories:
                return rule
        return None

    def hides(self, path: bytes, *, directory: bool) -> bool:
        rule = self.deciding(path, directory=directory)
        return rule is not None and not rule.negated
