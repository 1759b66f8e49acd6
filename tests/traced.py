"""The two-way check between the list of requirements and the tests that name them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import pytest


@dataclass(frozen=True)
class Coverage:
    """What is required, what is admitted not to be built yet, and what the collected tests name."""

    requirements: Mapping[str, str]
    open: frozenset[str]
    named: frozenset[str]

    def mistakes(self, *, whole: bool, strict: bool) -> list[str]:
        """What is wrong. That something has no test can be known only when the whole suite was collected."""
        wrong = [
            f"{item}: a test names it, no requirement has that number" for item in self._sorted(self._unknown(strict))
        ]
        if whole and strict:
            wrong += [
                f"{item}: no test covers it: {self.requirements[item]}" for item in self._sorted(self.uncovered())
            ]
            wrong += [f"{item}: covered, so it is not open any more" for item in self._sorted(self.open & self.named)]
            wrong += [
                f"{item}: marked open, but no such item" for item in self._sorted(self.open - self.requirements.keys())
            ]
        return wrong

    def uncovered(self) -> frozenset[str]:
        return frozenset(self.requirements) - self.named - self.open

    def summary(self) -> list[str]:
        covered = len(self.named & self.requirements.keys())
        lines = [f"{covered} of {len(self.requirements)} requirements covered, {len(self.open)} open"]
        missing = self._sorted(self.uncovered() | self.open)
        return lines + [f"  not covered: {' '.join(group)}" for _, group in groupby(missing, key=lambda item: item[0])]

    def _unknown(self, strict: bool) -> frozenset[str]:
        unknown = self.named - self.requirements.keys()
        return unknown if strict else frozenset(item for item in unknown if not re.fullmatch(r"[DHW]\d+", item))

    @staticmethod
    def _sorted(items: frozenset[str]) -> list[str]:
        return sorted(items, key=lambda item: (item[0], [int(part) for part in item[1:].split(".") if part.isdigit()]))


def is_whole_suite(config: pytest.Config) -> bool:
    """Whether nothing was left out by a path, -k, -m or --lf."""
    option = config.option
    narrowed = (
        option.keyword or option.markexpr or getattr(option, "lf", False) or getattr(option, "failedfirst", False)
    )
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed
