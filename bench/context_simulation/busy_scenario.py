"""Another mix of turns: JSON, logs and Chinese files, several calls a step, edits, long and very short messages.

It was written before anything was changed because of it. Odd seeds are for tuning, even ones for measuring, as in
`scenario`; the two share no text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.context_simulation.scenario import Fact, ScriptedTurn, Step

Calls = tuple[tuple[str, dict[str, Any]], ...]
FILES = 48
REPORT = (
    "we saw this again on friday when the second shift began and every scanner in the warehouse asked for its labels "
    "at once so the printer queue grew until the watchdog killed the whole group which is why nobody trusts the retry "
    "any more although the numbers from the dashboard look harmless if you only read the averages per hour"
)
ENGLISH = tuple(REPORT.split(" "))
CHINESE = "仓库系统每天晚上会重新计算库存如果打印队列太长就会丢失标签所以我们需要限制并发并且记录每一次失败的原因"
JAPANESE = (
    "在庫の再計算が終わるまで印刷キューを止めてください失敗した場合は理由を記録して担当者に連絡する必要があります"
)
ASKS = (
    "Have a look.",
    "What do you think?",
    "Fix it if it is small.",
    "Can you find out why?",
    "Go on.",
    "Is that right?",
)
SHORT = ("ok, and now?", "yes please", "hm, why?", "thanks. next one", "try again", "and the other file?")
# What is told, and the value that is looked for later.
TELLINGS = (
    ("shelf {name} may carry {number} kg", "{number} kg"),
    ("{name} is scanned with profile {code}", "{code}"),
    ("the label of {name} is printed by printer-{number}", "printer-{number}"),
    ("orders for {name} go to {name}.{code}@depot.example", "{name}.{code}@depot.example"),
    ("please leave {name} at {number} retries", "{number} retries"),
    ("货架 {name} 的编号是 {code}", "{code}"),
)


@dataclass
class BusyScenario:
    """The same shape as `Scenario`: texts and calls by seed, the files they read in `workspace`."""

    seed: int
    turns: int = 300
    facts: list[Fact] = field(default_factory=list)
    rare: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed * 7919 + 3)

    def write_files(self, workspace: Path) -> None:
        chance = random.Random(self.seed * 104_729 + 11)
        for folder in ("config", "logs", "notes", "app"):
            (workspace / folder).mkdir(parents=True, exist_ok=True)
        for number in range(FILES):
            _write(workspace / f"config/site_{number}.json", _make_json(chance, number))
            _write(workspace / f"logs/day_{number}.log", _make_log(chance, chance.choice((20, 80, 400))))
            _write(workspace / f"notes/page_{number}.md", _make_notes(chance, number))
            _write(workspace / f"app/unit_{number}.py", _make_code(chance, number))

    def played(self) -> Iterator[ScriptedTurn]:
        for number in range(1, self.turns + 1):
            fact = self._tell(number)
            kind = self._random.choices(tuple(KINDS), (22, 30, 14, 8, 10, 4, 12))[0]
            text, steps = KINDS[kind](self, number, fact)
            yield ScriptedTurn(number, text, steps, fact)

    def _tell(self, number: int) -> Fact:
        chance = self._random
        told, value = chance.choice(TELLINGS)
        name = chance.choice(("Kor", "Vel", "Tam", "Ost", "Riv", "Nad")) + chance.choice(("ak", "eth", "ilo", "umm"))
        fields = {
            "name": f"{name}{number}",
            "number": str(4000 + number * 17 + chance.randrange(16)),
            "code": f"{chance.choice('QXZW')}{number:03d}-{chance.randrange(16**3):03x}",
        }
        fact = Fact(number, number, told.format(**fields), value.format(**fields), fields["name"], "")
        self.facts.append(fact)
        return fact

    def _say(self, fact: Fact, rest: str) -> str:
        """The fact at the beginning, in the middle or at the end."""
        where = self._random.random()
        if where < 0.35:
            return f"FACT-{fact.number}: {fact.text}. {rest}"
        ask = self._random.choice(ASKS)
        return f"{rest} {fact.text}. {ask}" if where < 0.7 else f"{ask} {rest} Note that {fact.text}."

    def _words(self, least: int, most: int) -> str:
        return " ".join(self._random.choices(ENGLISH, k=self._random.randint(least, most))).capitalize() + "."

    def _answer(self, least: int = 10, most: int = 70) -> Step:
        return Step(text=self._words(least, most))

    def chat(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        return self._say(fact, self._random.choice(SHORT)), (self._answer(5, 50),)

    def explore(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        steps = tuple(
            Step(calls=self._look(self._random.choice((1, 1, 2, 3)))) for _ in range(self._random.choice((1, 2, 3)))
        )
        return self._say(fact, self._words(5, 40)), (*steps, self._answer())

    def edit(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        unit = self._random.randrange(FILES)
        path = f"app/unit_{unit}.py"
        new = "\n".join(
            f"    total += item.weight * {self._random.randrange(999)}" for _ in range(self._random.randint(2, 14))
        )
        edit = {
            "path": path,
            "target": f"UNIT = {unit}",
            "replacement": f"UNIT = {unit}\n\n\ndef extra(item):\n    total = 0\n{new}",
        }
        read = Step(
            text="I read it first." if self._random.random() < 0.4 else "", calls=(("read_file", {"path": path}),)
        )
        return self._say(fact, self._words(8, 30)), (read, Step(calls=(("edit_file", edit),)), self._answer(8, 40))

    def paste(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        pasted = _make_log(self._random, self._random.randint(8, 26))
        steps = (
            (Step(calls=self._look(1)), self._answer(30, 120))
            if self._random.random() < 0.5
            else (self._answer(30, 120),)
        )
        return self._say(fact, f"{self._words(5, 20)}\n{pasted}"), steps

    def asian(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        source = self._random.choice((CHINESE, JAPANESE))
        said = "".join(self._random.choices(source, k=self._random.randint(30, 220))) + "。"
        answer = Step(text="".join(self._random.choices(source, k=self._random.randint(20, 120))) + "。")
        steps = (Step(calls=(("read_file", {"path": f"notes/page_{self._random.randrange(FILES)}.md"}),)), answer)
        return self._say(fact, said), steps if self._random.random() < 0.5 else (answer,)

    def burst(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        many = Step(calls=self._look(self._random.randint(8, 24)))
        return self._say(fact, self._words(5, 20)), (many, self._answer(40, 160))

    def explain(self, number: int, fact: Fact) -> tuple[str, tuple[Step, ...]]:
        count = self._random.randint(4, 20)
        loads = [f"    rows.append(load({self._random.randrange(9999)}, retry={line}))" for line in range(count)]
        code = "\n".join(("```python", "def collect():", "    rows = []", *loads, "    return rows", "```"))
        long = Step(text=f"{self._words(60, 160)}\n{code}\n{self._words(20, 60)}")
        return self._say(fact, self._words(10, 50)), (long,)

    def _look(self, count: int) -> Calls:
        chance = self._random
        kinds: tuple[Callable[[int], tuple[str, dict[str, Any]]], ...] = (
            lambda n: ("read_file", {"path": f"config/site_{n}.json"}),
            lambda n: ("read_file", {"path": f"logs/day_{n}.log"}),
            lambda n: ("read_file", {"path": f"notes/page_{n}.md"}),
            lambda n: ("read_file", {"path": f"app/unit_{n}.py"}),
            lambda n: ("grep", {"pattern": f"scanner-{n}", "path": "logs"}),
            lambda _: ("ls", {"path": chance.choice(("config", "logs", "notes"))}),
        )
        return tuple(chance.choices(kinds, (4, 4, 2, 4, 3, 1))[0](chance.randrange(FILES)) for _ in range(count))


Make = Callable[[BusyScenario, int, Fact], tuple[str, tuple[Step, ...]]]
KINDS: dict[str, Make] = {
    "chat": BusyScenario.chat,
    "explore": BusyScenario.explore,
    "edit": BusyScenario.edit,
    "paste": BusyScenario.paste,
    "asian": BusyScenario.asian,
    "burst": BusyScenario.burst,
    "explain": BusyScenario.explain,
}


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def _make_json(chance: random.Random, number: int) -> str:
    rows = [
        {
            "id": f"dock-{number}-{row}",
            "lanes": [chance.randrange(99) for _ in range(chance.randint(2, 6))],
            "open": chance.random() < 0.5,
        }
        for row in range(chance.choice((6, 20, 60)))
    ]
    return json.dumps({"site": number, "docks": rows}, indent=chance.choice((None, 2)))


def _make_log(chance: random.Random, lines: int) -> str:
    return "\n".join(_make_log_line(chance) for _ in range(lines))


def _make_log_line(chance: random.Random) -> str:
    day = f"2026-0{chance.randint(1, 9)}-{chance.randint(10, 28)}"
    time = f"{chance.randint(10, 23)}:{chance.randint(10, 59)}:07.{chance.randrange(1000):03d}Z"
    level = chance.choice(("INFO", "WARN", "ERROR", "DEBUG"))
    said = " ".join(chance.choices(ENGLISH, k=6))
    return f"{day}T{time} {level} [scanner-{chance.randrange(FILES)}] {said} took={chance.randrange(9000)}ms"


def _make_notes(chance: random.Random, number: int) -> str:
    lines = [f"# 第{number}页"]
    lines += [
        "".join(chance.choices(CHINESE, k=chance.randint(20, 60))) + "。" for _ in range(chance.choice((5, 15, 40)))
    ]
    return "\n".join(lines) + "\n"


def _make_code(chance: random.Random, number: int) -> str:
    names = chance.sample(ENGLISH, chance.choice((3, 8, 20)))
    body = "    return [item for item in items if item.weight < limit]"
    made = [f"\ndef {name}_{number}(items, limit={chance.randrange(999)}):\n{body}\n" for name in names]
    return "\n".join((f"UNIT = {number}\n", *made))
