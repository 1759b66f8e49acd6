"""Three more mixes of turns, by their shape: chatty, heavy on tools, and with long results."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench.context_simulation.scenario import Fact, Scenario, Step

TALK = (
    "yesterday a customer wrote that the invoice for the spring order never reached her although our mail log shows "
    "it left at noon and because this is the third complaint within two weeks somebody should compare both queues "
    "before we promise anything about refunds or about the new template that finance would like to see by summer"
)
WORDS = tuple(TALK.split(" "))
QUESTIONS = ("Does that make sense?", "What would you try?", "Please check.", "Any idea?", "Next, please.", "Go ahead.")


@dataclass
class ShapedScenario(Scenario):
    """A share of turns for each number of tool steps, and the lengths of what is said and read."""

    steps: ClassVar[Mapping[int, float]] = {}
    asked_words: ClassVar[tuple[int, int]] = (5, 40)
    answer_words: ClassVar[tuple[int, int]] = (10, 80)
    calls: ClassVar[tuple[int, ...]] = (1,)
    file_lines: ClassVar[tuple[int, ...]] = (20, 40)
    pasted: ClassVar[float] = 0.0

    def write_files(self, workspace: Path) -> None:
        chance = random.Random(self.seed * 31 + 7)
        (workspace / "docs").mkdir(parents=True, exist_ok=True)
        for number in range(40):
            lines = [
                f"{line:04d} {chance.choice(('INFO', 'WARN', 'NOTE'))} queue-{chance.randrange(40)} "
                + " ".join(chance.choices(WORDS, k=chance.randint(4, 14)))
                for line in range(chance.choice(self.file_lines))
            ]
            (workspace / "docs" / f"log_{number}.txt").write_text("\n".join(lines) + "\n", "utf-8")

    def _asked(self, number: int, fact: Fact) -> str:
        chance = self._random
        words = self._talk(*self.asked_words)
        if chance.random() < self.pasted:
            words += "\n" + "\n".join(f"  | {self._talk(6, 14)}" for _ in range(chance.randint(10, 40))) + "\n"
        question = chance.choice(QUESTIONS)
        return f"{fact.text}. {words} {question}" if chance.random() < 0.5 else f"{words} By the way, {fact.text}."

    def _steps(self, number: int) -> tuple[Step, ...]:
        count = self._random.choices(tuple(self.steps), tuple(self.steps.values()))[0]
        worked = (Step(text=self._talk(0, 12), calls=self._look()) for _ in range(count))
        return (*worked, Step(text=self._talk(*self.answer_words)))

    def _look(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Calls of one step. Each looks elsewhere: the same call three times in a row is stopped as a loop."""
        return tuple(self._choose_call() for _ in range(self._random.choice(self.calls)))

    def _choose_call(self) -> tuple[str, dict[str, Any]]:
        chance = self._random
        path = f"docs/log_{chance.randrange(40)}.txt"
        kinds = (
            ("read_file", {"path": path}),
            ("grep", {"pattern": f"queue-{chance.randrange(40)} ", "path": "docs"}),
            ("read_file", {"path": path, "startLine": chance.randrange(1, 20), "endLine": 40}),
        )
        return chance.choices(kinds, (5, 3, 2))[0]

    def _talk(self, least: int, most: int) -> str:
        count = self._random.randint(least, most)
        return " ".join(self._random.choices(WORDS, k=count)).capitalize() + "." if count else ""


class ChattyScenario(ShapedScenario):
    steps: ClassVar[Mapping[int, float]] = {0: 75, 1: 20, 2: 5}
    asked_words = (8, 120)
    answer_words = (30, 220)


class ToolScenario(ShapedScenario):
    steps: ClassVar[Mapping[int, float]] = {0: 15, 2: 25, 3: 25, 4: 20, 6: 15}
    calls = (1, 1, 2)


class LongResultScenario(ShapedScenario):
    steps: ClassVar[Mapping[int, float]] = {0: 40, 1: 35, 2: 25}
    answer_words = (20, 120)
    file_lines = (150, 400, 900)
    pasted = 0.12
