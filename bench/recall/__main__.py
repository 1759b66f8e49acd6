"""Put facts into a long session and count how many `recall` finds: python -m bench.recall [--messages N] [--verbose].

`facts.txt` and `natural.txt`, each with its questions about what was never said, were written before any result was
seen. In `facts.txt` the three queries avoid the words of the fact; in `natural.txt` they are what people type. The
languages other than English are spoken in the facts alone, so that their grammar is as rare as their subjects.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ollm.domain.messages import Message, TextPart
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.services.message_search.embeddings import EmbeddingServer, SessionEmbedder
from ollm.services.message_search.search import MessageMatch, search_messages
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.session_texts import SessionTexts

HERE = Path(__file__).parent
NOISE_TURNS = 190
FIRST_HITS = 3
SUBJECTS = ("parser", "report", "invoice", "upload", "queue", "backup", "calendar", "kitchen", "shed", "bus", "song")
MATTERS = ("slow", "wrong", "empty", "late", "long", "unreadable", "missing", "broken", "noisy", "quiet", "odd")
ASKED = (
    "Could you look at the {0} again? It was {1} when we tried it this morning, and I would like to know why.",
    "I think the {0} is still {1}. What do you say, and how should we go on from here with it?",
    "There is something {1} about the {0}; the day before it was not like that. Please have a look.",
    "My colleague says that they need the {0} by the time we leave, even if it is a bit {1}.",
)
ANSWERS = (
    "I have looked at the {0}. It is {1} because of what we changed last time; that is put right now.",
    "The {0} was {1} for one reason only, and you had already said which. I would keep it as it is.",
    "Done. If the {0} is {1} again, tell me when it happens and where you were in it.",
)


class Fact(NamedTuple):
    said: str
    same_words: str
    other_words: list[str]


def load_facts(name: str = "facts.txt") -> list[Fact]:
    lines = [line for line in (HERE / name).read_text().splitlines() if line and not line.startswith("#")]
    parts = ([part.strip() for part in line.split("|")] for line in lines)
    return [Fact(said, same, [query.strip() for query in others.split(";")]) for said, same, others in parts]


def make_talk(facts: Sequence[Fact], turns: int, seed: int = 11) -> list[tuple[str, str]]:
    """Requests and answers: the facts in a random order among `turns` of other talk."""
    chance = random.Random(seed)

    def fill(patterns: Sequence[str]) -> str:
        return chance.choice(patterns).format(chance.choice(SUBJECTS), chance.choice(MATTERS))

    asked = [fill(ASKED) for _ in range(turns)] + [fact.said for fact in facts]
    chance.shuffle(asked)
    return [part for text in asked for part in (("user", text), ("assistant", fill(ANSWERS)))]


async def record_session(directory: Path, talk: Sequence[tuple[str, str]]) -> str:
    service = ChatRecordingService.in_directory(directory / "sessions")
    session = await service.create_session("model", "provider")
    for role, text in talk:
        message = Message(role=role, parts=(TextPart(text),), timestamp="2026-01-01T00:00:00.000Z", id=0)  # type: ignore[arg-type]
        await service.record_message(session, message)
    await service.save_session(session)
    await service.close_session(session)
    return session


def open_index(directory: Path) -> SessionIndex:
    return SessionIndex(directory / "index.db", directory / "sessions")


def find(
    directory: Path, session: str, queries: Sequence[str], embedder: SessionEmbedder | None = None
) -> list[MessageMatch]:
    vectors = asyncio.run(embedder.embed_queries(queries)) if embedder else []
    with closing(open_index(directory)) as index:
        model = embedder.server.model if embedder else ""
        return search_messages(SessionTexts(index, session), queries, FIRST_HITS, model, vectors)


async def measure_pause(work: Callable[[], object]) -> tuple[float, float]:
    """Run it as `recall` does; return the seconds it took and the longest pause of the event loop."""
    longest, running = 0.0, True

    async def tick() -> None:
        nonlocal longest
        while running:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    longest, before = 0.0, time.perf_counter()
    await asyncio.to_thread(work)
    taken, running = time.perf_counter() - before, False
    await ticking
    return taken, longest


def measure_facts(directory: Path, name: str, verbose: bool, server: str) -> None:
    print(f"{name}.txt")
    facts = load_facts(f"{name}.txt")
    session = asyncio.run(record_session(directory, make_talk(facts, NOISE_TURNS)))
    embedder = None
    if server:
        embedder = SessionEmbedder(EmbeddingServer("embedding", server, {}), lambda: open_index(directory))
        asyncio.run(embedder.embed_session(session))
    for kind, ask in (
        ("same words", lambda fact: [fact.same_words]),
        ("three queries", lambda fact: fact.other_words),
    ):
        missed = []
        for fact in facts:
            hits = find(directory, session, ask(fact), embedder)
            missed += [] if fact.said in (hit.text.text for hit in hits) else [fact]
        print(f"{kind:<14} {len(facts) - len(missed)} of {len(facts)}")
        if verbose:
            print(*(f"  missed: {ask(fact)} <- {fact.said}" for fact in missed), sep="\n")
    named = "never_said.txt" if name == "facts" else f"{name}_never_said.txt"
    never = [line.split(";") for line in (HERE / named).read_text().splitlines()]
    answered = {tuple(asked): hits for asked in never if (hits := find(directory, session, asked, embedder))}
    print(f"never said     {len(answered)} of {len(never)} answered")
    if verbose:
        for asked, hits in answered.items():
            print(f"  {asked} -> {hits[0].words}: {hits[0].passage}")


async def measure_size(directory: Path, messages: int) -> None:
    facts = load_facts()
    talk = make_talk(facts, messages // 2 - len(facts))
    session = await record_session(directory, talk[:2])
    path = directory / "sessions" / f"{session}.json"
    document = json.loads(path.read_text())
    document["messages"] = [
        document["messages"][0] | {"id": number, "role": role, "parts": [{"type": "text", "text": text}]}
        for number, (role, text) in enumerate(talk, 1)
    ]  # a record a message would be as many flushes of the disk
    path.write_text(json.dumps(document))
    asked = facts[0].other_words
    taken, pause = await measure_pause(lambda: find(directory, session, asked))
    print(f"{messages:,} messages, first search (indexes a part): {taken:.1f} s, longest pause {pause * 1000:.0f} ms")
    while is_behind(directory, session):
        find(directory, session, asked)
    for name, queries in (("same words", [facts[0].same_words]), ("other words", asked), ("never said", ["sailing"])):
        taken, pause = await measure_pause(partial(find, directory, session, queries))
        print(f"{messages:,} messages, {name}: {taken * 1000:.0f} ms, longest pause {pause * 1000:.0f} ms")


def is_behind(directory: Path, session: str) -> bool:
    with closing(open_index(directory)) as index:
        texts = SessionTexts(index, session)
        texts.refresh()
        return texts.is_behind


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--messages", type=int, default=0, help="also time searches in a session of this size")
    parser.add_argument("--embeddings", default="", metavar="URL", help="search by meaning too, with this server")
    parser.add_argument("--verbose", action="store_true", help="list what was not found")
    asked = parser.parse_args()
    for name in ("facts", "natural"):
        with tempfile.TemporaryDirectory() as directory:
            measure_facts(Path(directory), name, asked.verbose, asked.embeddings)
    if asked.messages:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(measure_size(Path(directory), asked.messages))


if __name__ == "__main__":
    main()
