"""A session damaged in every known way, recorded: what is read of it, what is said, and the files after it went on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import OllmError
from ollm.domain.session import Session
from ollm.store.session_files import MessagePage, SessionFiles, recovery
from ollm.store.session_index.search import search_sessions
from tests.damage_kinds import EVERY, JOURNALS
from tests.recorded_courses import compare_course, describe_text
from tests.store.sessions.support import AT, Home, run, said

ID = "550e8400-e29b-41d4-a716-446655440000"
LATER = datetime(2026, 1, 28, 9, 30, tzinfo=UTC)
SOUND = msgspec.json.Decoder(Session)
MADE_WITH_A_CLOCK = ("gzip", "zip")
RECORDED = Path(__file__).with_name("recorded")


def make_document() -> bytes:
    """A session of ours as it is written: questions, calls, thinking, an answer that was cut off."""
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for turn in range(1, 6):
        number = 3 * turn - 2
        messages += [
            {"role": "user", "parts": [{"type": "text", "text": f"question {turn} grün"}]},
            {
                "role": "assistant",
                "parts": [{"type": "thinking", "text": "hm"}, {"type": "tool_call", "id": f"c{turn}"}],
                **({"interrupted": True} if turn == 4 else {}),
            },
            {"role": "tool", "parts": [{"type": "tool_result", "id": f"c{turn}"}]},
        ]
        result = {"llmContent": f"found {turn}", "exitCode": 0}
        calls.append(
            {"id": f"c{turn}", "name": "shell", "args": {"command": f"ls {turn}"}, "timestamp": AT}
            | ({"status": "ok", "result": result} if turn < 5 else {"status": "running"})
            | {"messageId": number + 1}
        )
    entries = [{**message, "timestamp": AT, "id": number} for number, message in enumerate(messages, 1)]
    head = {"sessionId": ID, "startTime": AT, "lastActivity": AT, "model": "m", "provider": "ollama"}
    metadata = {"tokenCount": 900, "compressionCount": 1, "title": "Questions", "contextWindow": 4096}
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    rest = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in calls)
    begun = json.dumps({**head, "metadata": metadata}, separators=(",", ":"))[:-1]
    return f'{begun},"messages":[\n{lines}\n],"toolCalls":[\n{rest}\n]}}\n'.encode()


class DamagedHome:
    """One damaged session, and what comes of asking for it."""

    def __init__(self, root: Path, name: str, document: bytes | None, journal: bytes = b"") -> None:
        self.home = Home(root / name)
        self.home.files = SessionFiles(self.home.places, clock=lambda: LATER)
        self.home.sessions.mkdir(parents=True)
        if document is not None:
            self.home.document(ID).write_bytes(document)
        if journal:
            self.home.journal(ID).write_bytes(journal)
        for path in self.home.sessions.iterdir():
            os.utime(path, (LATER.timestamp(), LATER.timestamp()))
        self.lines = [f"== {name}"]

    def note(self, kind: str, ask: Callable[[], Any]) -> None:
        try:
            found = ask()
        except (OllmError, OSError) as error:
            found = f"{type(error).__name__}: {error}"
        text = found if isinstance(found, str) else json.dumps(msgspec.to_builtins(found), ensure_ascii=False)
        self.lines += [f"{kind} {line}" for line in text.replace(str(self.home.root), "HOME").split("\n")]

    def look(self) -> None:
        files, index = self.home.files, self.home.index()
        self.note("read", lambda: describe_loaded(files.read(ID)))
        self.note("page", lambda: describe_loaded(files.read(ID, MessagePage(before=8, limit=3))))
        self.note("newest", lambda: describe_loaded(files.read(ID, MessagePage(before=None, limit=2))))
        self.note("document", lambda: describe_text(b"".join(files.iter_document(ID)).decode("utf-8", "replace")))
        self.note("leftovers", lambda: files.describe_leftovers(ID))
        self.note("list", lambda: [steady(dict(line)) for line in index.list_sessions()])
        self.note("found", lambda: [hit["snippet"] for hit in search_sessions(index, "question grün").hits])

    def go_on(self) -> None:
        async def work() -> Any:
            service = self.home.service(clock=lambda: LATER)
            loaded = await service.open_session(ID)
            await service.record_message(ID, msgspec.structs.replace(said("afterwards"), timestamp=AT))
            await service.close_session(ID)
            return describe_loaded(loaded)

        self.note("opened", lambda: run(work))
        self.note("again", lambda: describe_loaded(self.home.files.read(ID)))
        for path in sorted(self.home.root.rglob("*")):
            if path.is_file() and path.suffix in (".json", ".journal"):
                text = path.read_bytes().decode("utf-8", "replace")
                self.note("file", lambda name=path.name, text=text: f"{len(name)} {describe_text(text)}")
        self.note("told", lambda: [type(event).__name__ for event in self.home.events])


def steady(found: Any) -> Any:
    """Without what is empty."""
    if isinstance(found, dict):
        return {key: steady(value) for key, value in found.items() if value not in (None, "", 0, [], {}, ())}
    return [steady(one) for one in found] if isinstance(found, list | tuple) else found


def describe_loaded(loaded: Any) -> list[Any]:
    """What differs from the session before it was damaged."""
    session, sound = loaded.session, SOUND.decode(make_document())
    messages = [list_differences(one, other) for one, other in pair(session.messages, sound.messages)]
    calls = [list_differences(one, other) for one, other in pair(session.tool_calls, sound.tool_calls)]
    state = [loaded.damage, loaded.read_only, loaded.unfinished, loaded.skipped, loaded.calls_so_far]
    head, bare = (msgspec.structs.replace(one, messages=(), tool_calls=()) for one in (session, sound))
    return [*state, list(filter(None, messages)), list(filter(None, calls)), list_differences(head, bare)]


def pair(found: Any, sound: Any) -> list[tuple[Any, Any]]:
    return list(zip_longest(found, sound[-len(found) :] if found else sound[:0]))


def list_differences(found: Any, sound: Any) -> dict[str, Any]:
    now, before = (steady(msgspec.to_builtins(one)) if one is not None else {} for one in (found, sound))
    return {key: now.get(key) for key in sorted(now | before) if now.get(key) != before.get(key)}


JOURNAL = (
    b'{"at":"2026-01-27T11:00:00.000Z","message":{"role":"user","parts":[{"type":"text","text":"in the journal"}],'
    b'"timestamp":"2026-01-27T11:00:00.000Z","id":16}}\n'
    b'{"at":"2026-01-27T11:00:01.000Z","call":{"id":"c6","name":"ls","args":{},"timestamp":"t","status":"running",'
    b'"messageId":16}}\n'
    b'{"at":"2026-01-27T11:00:02.000Z","partial":[{"type":"text","text":"half an ans"}]}\n'
)


def list_cases() -> dict[str, tuple[bytes | None, bytes]]:
    document = make_document()
    cases: dict[str, tuple[bytes | None, bytes]] = {
        name: (damage(document), b"") for name, damage in EVERY.items() if name not in MADE_WITH_A_CLOCK
    }
    cases |= {f"journal-{name}": (document, journal) for name, journal in JOURNALS.items()}
    return cases | {
        "journal-sound": (document, JOURNAL),
        "journal-torn": (document, JOURNAL[:-9]),
        "journal-alone": (None, JOURNAL),
        "journal-cut": (document[:900], JOURNAL),
    }


@pytest.mark.parametrize(("large", "part", "parts"), [*((False, n, 8) for n in range(8)), (True, 0, 2), (True, 1, 2)])
def test_what_is_read_of_a_damaged_session_and_what_it_becomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool, part: int, parts: int
) -> None:
    if large:
        monkeypatch.setattr(recovery, "LARGE_BYTES", 0)
    lines = []
    for name, (data, journal) in list(list_cases().items())[part::parts]:
        place = DamagedHome(tmp_path, name, data, journal)
        if not large:
            place.look()
        place.go_on()
        lines += place.lines
    compare_course(RECORDED / f"damage_{'large' if large else 'whole'}_{part}.txt", lines)
