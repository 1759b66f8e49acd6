"""A long conversation with the facts in it: user messages with other talk around them, answers, tool results."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache

from bench.context_simulation.scenario import Scenario
from bench.recall.everyday import EXCHANGES, Exchange
from bench.recall.facts import FACTS
from bench.recall.fresh import FRESH
from bench.recall.in_passing import FIRST_SET, SECOND_SET
from ollm.services.message_search import SearchedMessage

BEFORE = (
    "Before you go on: {}",
    "Something to remember. {}",
    "{} Now have a look at the function again.",
    "Thanks, that works. {} What would you do next?",
    "I looked at the diff and it is fine so far. {} Run the tests once more, please.",
    "{}",
)
ANSWERS = (
    "I have read the file and changed the function as you asked. The tests pass now.",
    "Done. The server starts, and the error in the log is gone; the port was taken by an old process.",
    "I looked for the setting in the configuration and did not find a second place that uses it.",
    "The query is slow because of the missing index on the table; I added one and measured again.",
    "Understood, I keep that in mind for the release.",
)
OUTPUTS = (
    "src/app.py:12: def connect(host, port, password, timeout=30):\nsrc/app.py:40: raise ConnectionError(host)",
    "collected 214 items\n214 passed in 12.31s",
    "GET /health 200 12 ms\nGET /login 302 8 ms\nworker 3 started\nerror: user 12 has no account",
    "README.md  docs  src  tests  Makefile  docker-compose.yml  .env.example",
)


@cache
def make_conversation(seed: int = 4) -> tuple[SearchedMessage, ...]:
    """Every fact once, in a random order, between turns of another conversation."""
    chance = random.Random(seed)
    texts = [chance.choice(BEFORE).format(fact.text) for fact in (*FACTS, *FRESH)]
    texts += [turn.text for turn in Scenario(seed, 120).played()]
    chance.shuffle(texts)
    messages: list[SearchedMessage] = []
    for text in texts:
        said = [("user", text), ("assistant", chance.choice(ANSWERS))]
        if chance.random() < 0.5:
            said.insert(1, ("tool", f"[shell c{len(messages)}]\n{chance.choice(OUTPUTS)}"))
        messages += [
            SearchedMessage(number=len(messages) + place, role=role, text=words)
            for place, (role, words) in enumerate(said, 1)
        ]
    return tuple(messages)


@cache
def make_everyday_conversation(seed: int = 9) -> tuple[SearchedMessage, ...]:
    """The same with the exchanges of everyday work somewhere in it, each whole."""
    return _mix_in(make_conversation(), EXCHANGES, seed)


@cache
def make_passing_conversation(seed: int = 5) -> tuple[SearchedMessage, ...]:
    """All of that with what was said in passing somewhere in it."""
    return _mix_in(make_everyday_conversation(), (*FIRST_SET, *SECOND_SET), seed)


def _mix_in(messages: Sequence[SearchedMessage], added: Iterable[Exchange], seed: int) -> tuple[SearchedMessage, ...]:
    exchanges: list[list[tuple[str, str]]] = [
        [("user", exchange.said), ("assistant", exchange.answer)] for exchange in added
    ]
    for message in messages:
        if message.role == "user":
            exchanges.append([])
        exchanges[-1].append((message.role, message.text))
    random.Random(seed).shuffle(exchanges)
    said = [part for exchange in exchanges for part in exchange]
    return tuple(SearchedMessage(number=place, role=role, text=text) for place, (role, text) in enumerate(said, 1))
