"""One line of a measurement, and the ways to take a figure."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """Our figure and a baseline's; smaller is better.

    `goal` bounds the ratio of the two (`of="ratio"`) or our own figure (`of="figure"`); without a baseline it is
    always the second.
    """

    name: str
    ours: float
    baseline: float | None = None
    goal: float | None = None
    unit: str = "s"
    of: Literal["ratio", "figure"] = "ratio"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """None when there is no goal."""
        if self.goal is None:
            return None
        measured = self.ours if self.of == "figure" or self.ratio is None else self.ratio
        return measured <= self.goal


def seconds(action: Callable[[], object], times: int = 7) -> float:
    """The median time of several calls, after one that warms up."""
    action()
    return statistics.median(_timed(action) for _ in range(times))


def pair(ours: Callable[[], object], baseline: Callable[[], object], times: int = 15) -> tuple[float, float]:
    """Medians of both, taken in turns so that a busy moment hits both alike."""
    ours(), baseline()
    taken = [(_timed(ours), _timed(baseline)) for _ in range(times)]
    return statistics.median(a for a, _ in taken), statistics.median(b for _, b in taken)


def program(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Callable[[], object]:
    """A call that runs a program to its end, its output thrown away. Compiled modules are kept, as on any machine:
    where that is forbidden, compiling takes as long as all the rest."""
    kept = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"}

    def call() -> object:
        return subprocess.run(arguments, env=kept, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    return call


def _timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin
