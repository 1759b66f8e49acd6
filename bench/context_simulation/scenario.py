"""What is said in a simulated conversation: planted facts, tool turns, Chinese, pasted text, large output, many calls.

Everything follows from a seed. Odd seeds are for tuning; even ones are held back to see whether it holds elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACTIONS = (
    "Look at how it is used and tell me what would break.",
    "Check the callers, then say what you would change first.",
    "Compare it with what we agreed before and point out the differences.",
    "Think about the failure cases and list the three worst.",
)
PROSE = (
    "the service reads its settings when it starts and keeps them until somebody sends a signal which is rarely done "
    "because most of the team restarts it by hand after a change to the configuration and nobody has measured how "
    "long that takes on the slow machines in the second hall where the old disks are still in use for nightly jobs"
)
WORDS = tuple(PROSE.split(" "))
CHINESE = (
    "请检查这个模块的配置文件是否与我们之前讨论的方案一致如果有不同请列出差异并说明原因以及可能的影响范围和修复建议"
)
RARE = "龘靐齉爩鱻麤龗灪吁龖厵滟爨癵籱饢驫鲡鹂鸾"


@dataclass(frozen=True)
class Fact:
    """`value` occurs nowhere else; `question` asks for it without the word it is told by."""

    number: int
    turn: int
    text: str
    value: str
    word: str
    question: str


@dataclass(frozen=True)
class Step:
    """One answer of the model: calls, or the last words."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class ScriptedTurn:
    number: int
    text: str
    steps: tuple[Step, ...]
    fact: Fact | None = None

    @property
    def uses_tools(self) -> bool:
        return len(self.steps) > 1


# How a fact is told, by what it is about, and how somebody asks for it who does not remember the word.
TOLD = (
    (
        "the settings of {name}-svc live in /etc/{name}/{code}.toml",
        "/etc/{name}/{code}.toml",
        "Where is {name} configured?",
    ),
    ("{name} listens on port {number}, not on the usual one", "{number}", "What socket number does {name} serve on?"),
    ("the owner of {name} is {person}, ask her before you touch it", "{person}", "Who is responsible for {name}?"),
    ("we decided that {name} keeps {number} rows at most", "{number}", "How many records may {name} hold?"),
    (
        "the token for {name} is read from the variable {upper}_{code}",
        "{upper}_{code}",
        "Which environment name has the secret of {name}?",
    ),
    ("the bug in {name} was fixed by commit {code}{code2}", "{code}{code2}", "What change repaired {name}?"),
)
PEOPLE = ["Marta", "Ilse", "Noor", "Greta", "Jana", "Petra", "Wanda", "Tilda", "Runa", "Svea"]


@dataclass
class Scenario:
    """`turns` of them; `workspace` gets the files the tools read."""

    seed: int
    turns: int = 300
    facts: list[Fact] = field(default_factory=list)
    rare: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def write_files(self, workspace: Path) -> None:
        chance = random.Random(self.seed + 1)
        (workspace / "src").mkdir(parents=True, exist_ok=True)
        for number in range(80):
            lines = [
                f"def step_{number}_{line}(value): return value + {chance.randrange(10**6)}"
                for line in range(chance.choice((30, 60, 60, 120)))
            ]
            (workspace / "src" / f"part_{number}.py").write_text("\n".join(lines) + "\n", "utf-8")
        big = "\n".join(f"{line:05d} {' '.join(chance.choices(WORDS, k=9))}" for line in range(900))
        (workspace / "large.log").write_text(big[:50_000] + "\n", "utf-8")

    def played(self) -> Iterator[ScriptedTurn]:
        for number in range(1, self.turns + 1):
            yield self._turn(number)

    def _turn(self, number: int) -> ScriptedTurn:
        fact = self._fact(number)
        steps = self._steps(number)
        text = self._asked(number, fact)
        return ScriptedTurn(number, text, steps, fact)

    def _fact(self, number: int) -> Fact:
        chance = self._random
        told, value, question = chance.choice(TOLD)
        name = (
            chance.choice("bcdfgklmnprst")
            + chance.choice("aeiou")
            + chance.choice("lmnrstv")
            + chance.choice("aeiou")
            + chance.choice(("mo", "ra", "tek", "lis", "von", "dar"))
        )
        name += f"{number:02d}" if chance.random() < 0.3 else chance.choice(("", "x", "us"))
        fields = {
            "name": name,
            "upper": name.upper(),
            "code": f"{chance.randrange(16**4):04x}",
            "code2": f"{chance.randrange(16**4):04x}",
            "number": str(20_000 + number * 31 + chance.randrange(30)),
            "person": f"{chance.choice(PEOPLE)} {name.capitalize()}sen",
        }
        text = told.format(**fields)
        fact = Fact(number, number, text, value.format(**fields), name, question.format(**fields))
        self.facts.append(fact)
        return fact

    def _asked(self, number: int, fact: Fact) -> str:
        chance = self._random
        if self.rare:
            return f"FACT-{number}: {fact.text}. " + "".join(chance.choices(RARE, k=chance.randrange(60, 300)))
        if number % 11 == 5:
            filler = "".join(chance.sample(CHINESE, len(CHINESE)))[: chance.randrange(20, 50)] + "。"
        else:
            filler = self._prose(chance.choice((8, 25, 60, 60, 90)))
        if number % 43 == 40:
            filler += "\n" + "\n".join(f"  at module_{line}.call({chance.randrange(9999)})" for line in range(60))
        action = chance.choice(ACTIONS)
        lead = chance.random()
        if lead < 0.5:
            return f"FACT-{number}: {fact.text}. {filler} {action}"
        if lead < 0.75:
            return f"{action} {filler} Remember: {fact.text}."
        return f"{filler} By the way, {fact.text}. {action}"

    def _steps(self, number: int) -> tuple[Step, ...]:
        chance = self._random
        last = Step(text=self._prose(chance.choice((15, 40, 40, 90))))
        if number % 150 == 60:
            return (Step(calls=(("read_file", {"path": "large.log"}),)), last)
        if number % 150 == 80:
            many = tuple(("read_file", {"path": f"src/part_{n}.py"}) for n in range(60))
            return (Step(calls=many), last)
        if number % 150 == 100:
            tens = [tuple(("read_file", {"path": f"src/part_{n * 10 + m}.py"}) for m in range(10)) for n in range(6)]
            return (*(Step(calls=calls) for calls in tens), last)
        if number % 2 == 0:
            return (*(self._step() for _ in range(chance.choice((1, 1, 2, 2, 3)))), last)
        return (last,)

    def _step(self) -> Step:
        chance = self._random
        number = chance.randrange(80)
        kinds: tuple[tuple[str, dict[str, Any]], ...] = (
            ("read_file", {"path": f"src/part_{number}.py"}),
            ("grep", {"pattern": f"step_{number}_", "path": "src"}),
            ("ls", {"path": "src"}),
            ("read_file", {"path": f"src/missing_{number}.py"}),
        )
        call = chance.choices(kinds, (6, 3, 1, 1))[0]
        return Step(text=self._prose(8) if chance.random() < 0.5 else "", calls=(call,))

    def _prose(self, words: int) -> str:
        said = self._random.choices(WORDS, k=words)
        return " ".join(said).capitalize() + "."
