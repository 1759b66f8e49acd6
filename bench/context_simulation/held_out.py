"""Mixes and seeds that nothing is tuned to: `python -m bench.context_simulation --held-out`.

Run it to judge a finished design against an earlier one, not to choose its constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bench.context_simulation.shapes import ShapedScenario


class ReviewScenario(ShapedScenario):
    """Somebody pastes diffs and logs, and lets the agent look at a file or two."""

    steps: ClassVar[Mapping[int, float]] = {0: 30, 1: 40, 2: 30}
    asked_words = (10, 60)
    answer_words = (40, 160)
    file_lines = (60, 120, 240)
    pasted = 0.35


class PairingScenario(ShapedScenario):
    """Short orders, several small steps each, short answers."""

    steps: ClassVar[Mapping[int, float]] = {0: 20, 1: 30, 2: 25, 3: 15, 5: 10}
    asked_words = (3, 25)
    answer_words = (5, 40)
    calls = (1, 1, 1, 2)
    file_lines = (8, 15, 25)


class InterviewScenario(ShapedScenario):
    """Long messages and long answers, hardly a tool."""

    steps: ClassVar[Mapping[int, float]] = {0: 90, 1: 10}
    asked_words = (40, 180)
    answer_words = (60, 260)


class HuntScenario(ShapedScenario):
    """A search through long files, with several calls at once."""

    steps: ClassVar[Mapping[int, float]] = {0: 25, 1: 25, 2: 30, 4: 20}
    asked_words = (5, 30)
    calls = (1, 2, 3)
    file_lines = (100, 400, 1200)


HELD_OUT_MIXES = {
    "review": ReviewScenario,
    "pairing": PairingScenario,
    "interview": InterviewScenario,
    "hunt": HuntScenario,
}
# Mix, window, turns, seed.
HELD_OUT = (
    ("long", 8192, 120, 8210),
    ("long", 8192, 120, 8212),
    ("chatty", 8192, 140, 8214),
    ("tools", 8192, 70, 8216),
    ("mixed", 8192, 120, 8218),
    ("review", 8192, 100, 8220),
    ("pairing", 8192, 100, 8222),
    ("interview", 8192, 100, 8224),
    ("hunt", 8192, 80, 8226),
    ("chatty", 4096, 80, 8228),
    ("tools", 4096, 50, 8230),
    ("long", 4096, 60, 8232),
    ("pairing", 4096, 60, 8234),
)
