"""The two-way check between the list of requirements and the tests that name them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import pytest


@dataclass(frozen=True)
class Coverage:
    """What is required, what is admitted not to be built yet, and what the collected tests name.

    `same` says which items state a rule that another states too: a test of either covers both.
    """

    requirements: Mapping[str, str]
    open: frozenset[str]
    named: frozenset[str]
    same: Mapping[str, str] = field(default_factory=dict)

    def mistakes(self, *, whole: bool, strict: bool) -> list[str]:
        """What is wrong. That something has no test can be known only when the whole suite was collected."""
        wrong = [f"{item}: a test names it, no requirement has that number" for item in ordered(self._unknown(strict))]
        if whole and strict:
            missing = ordered(self.uncovered() - self.open)
            wrong += [f"{item}: no test covers it: {self.requirements[item]}" for item in missing]
            wrong += [f"{item}: covered, so it is not open any more" for item in ordered(self.open & self.covered())]
            strangers = self.open - self.requirements.keys()
            wrong += [f"{item}: marked open, but no such item" for item in ordered(strangers)]
        return wrong

    def covered(self) -> frozenset[str]:
        """What a test names, and what states the same."""
        root = {item: self._root(item) for item in self.requirements}
        proven = {root[item] for item in self.named if item in root}
        return frozenset(item for item in self.requirements if root[item] in proven)

    def uncovered(self) -> frozenset[str]:
        return frozenset(self.requirements) - self.covered()

    def summary(self) -> list[str]:
        missing = ordered(self.uncovered())
        covered = len(self.requirements) - len(missing)
        named = len(self.named & self.requirements.keys())
        ways = f"{named} named by a test, {covered - named} state a rule that another one named states too"
        lines = [f"{covered} of {len(self.requirements)} requirements covered, {len(missing)} open: {ways}"]
        return lines + [f"  open: {' '.join(group)}" for _, group in groupby(missing, key=lambda item: item[0])]

    def _root(self, item: str) -> str:
        while item in self.same:
            item = self.same[item]
        return item

    def _unknown(self, strict: bool) -> frozenset[str]:
        unknown = self.named - self.requirements.keys()
        return unknown if strict else frozenset(item for item in unknown if not re.fullmatch(r"[DHW]\d+", item))


def ordered(items: Iterable[str]) -> list[str]:
    """By letter, then by number."""
    return sorted(items, key=lambda item: (item[0], [int(part) for part in item[1:].split(".") if part.isdigit()]))


def is_whole_suite(config: pytest.Config) -> bool:
    """Whether nothing was left out by a path, -k, -m or --lf; a worker of a parallel run was told."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["whole"])
    option = config.option
    narrowed = (
        option.keyword or option.markexpr or getattr(option, "lf", False) or getattr(option, "failedfirst", False)
    )
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed
