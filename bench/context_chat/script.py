"""What is said in the chat: facts to keep, files to read and change, a long output, small talk, questions back.

Everything follows from the turn's number, so that two models hear the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

LOG_BYTES = 50_000
ASK_EVERY_TURNS = 3
FIRST_QUESTION_TURN = 10
# What is told, what the answer must have in it, and the question for it.
FACTS = (
    ("The staging database listens on port 45871.", "45871", "On which port does the staging database listen?"),
    ("Marta Vogel owns the billing service.", "Vogel", "Who owns the billing service?"),
    ("The nightly backup goes to /srv/vault/blue.", "/srv/vault/blue", "Where does the nightly backup go?"),
    ("We release on the ninth of March.", "March", "When do we release?"),
    ("The login page may take 340 milliseconds at most.", "340", "How long may the login page take?"),
    ("The import job is called quince-runner.", "quince", "What is the name of the import job?"),
    ("Retries are limited to 83 in the payment client.", "83", "How many retries does the payment client have?"),
    ("The old parser was removed in commit 8f3ac21.", "8f3ac21", "Which commit removed the old parser?"),
    ("The API key stands in the variable HERON_KEY.", "HERON_KEY", "Which variable has the API key?"),
    ("The test customer has the number 70412.", "70412", "What is the number of the test customer?"),
    ("The search index is rebuilt by Pawel.", "Pawel", "Who rebuilds the search index?"),
    ("The cache keeps 2500 entries.", "2500", "How many entries does the cache keep?"),
    ("The mail server is mx7.harbor.example.", "mx7", "What is the host name of the mail server?"),
    ("The report module is written in Kotlin.", "Kotlin", "In which language is the report module written?"),
    ("The export must be in the format Parquet.", "Parquet", "In which format must the export be?"),
    ("The second data centre is in Tallinn.", "Tallinn", "In which city is the second data centre?"),
)
TASKS = (
    "Write a Python function that reverses a string. Only the function.",
    "Explain in two sentences what a hash table is.",
    "Give three names for a function that removes duplicates from a list.",
    "What is the difference between a list and a tuple in Python? Two sentences.",
    "Write a shell command that counts the lines of all Python files. Only the command.",
)


@dataclass(frozen=True)
class ChatTurn:
    """`expected` stands in a right answer; `is_done` looks whether the files are as they were asked to be."""

    number: int
    kind: str
    text: str
    expected: str = ""
    is_done: Callable[[Path], bool] | None = None


def write_files(project: Path) -> None:
    """The project the chat is about: modules to read and change, and a log of 50 KB."""
    chance = random.Random(7)
    (project / "src").mkdir(parents=True, exist_ok=True)
    for number in range(12):
        lines = [f'"""Part {number}."""', "", f"LIMIT = {100 + number}", ""]
        for step in range(chance.choice((4, 8, 14))):
            lines += [f"def step_{step}(value: int) -> int:", f"    return value + {chance.randrange(10**5)}", "", ""]
        (project / "src" / f"part_{number}.py").write_text("\n".join(lines), encoding="utf-8")
    lines = [f"{n:05d} INFO worker {chance.randrange(40)} took {chance.randrange(9999)} ms" for n in range(1600)]
    lines[700] = "00700 ERROR worker 17 lost the lease of job 5519"
    (project / "build.log").write_text("\n".join(lines)[:LOG_BYTES] + "\n", encoding="utf-8")


def play_turns(turns: int) -> Iterator[ChatTurn]:
    """Facts are told in the first half, and asked for from the tenth turn on, the oldest first."""
    told = asked = 0
    for number in range(1, turns + 1):
        if number >= FIRST_QUESTION_TURN and number % ASK_EVERY_TURNS == 0 and told > 1:
            yield ask_fact(number, asked % told)
            asked += 1
        elif number % 2 == 1 and told < len(FACTS):
            fact = FACTS[told][0]
            yield ChatTurn(number, "tell", f"Please keep in mind: {fact} Answer with one short sentence.")
            told += 1
        else:
            yield give_work(number)


def ask_fact(number: int, index: int) -> ChatTurn:
    _, expected, question = FACTS[index]
    text = f"{question} I told you earlier. Answer with one short sentence."
    return ChatTurn(number, "ask", text, expected)


def give_work(number: int) -> ChatTurn:
    part = number % 12
    name = f"src/part_{part}.py"
    if number in (8, 38):
        return ChatTurn(
            number, "output", "Run the command `cat build.log` and tell me which job lost its lease.", "5519"
        )
    if number % 4 == 0:
        text = f"In {name} change the value of LIMIT to {900 + number}. Change nothing else."
        wanted = f"LIMIT = {900 + number}"
        return ChatTurn(number, "edit", text, is_done=lambda project: wanted in (project / name).read_text())
    if number % 4 == 2:
        text = f"Read {name} and tell me the value of LIMIT in it."
        return ChatTurn(number, "read", text)
    return ChatTurn(number, "talk", TASKS[number % len(TASKS)])
