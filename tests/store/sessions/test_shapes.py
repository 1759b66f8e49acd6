"""Lines of damaged sessions are taken by their shape, wherever they stand and whatever their number, and told once."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, run, said

FOLDED, STREAMED = 3, "the streamed answer"
TEXTS = [text for turn in range(FOLDED + 1) for text in (f"question {turn}", f"answer {turn}")] + [STREAMED]
Lines = list[bytes]


def record_killed(home: Home) -> tuple[str, Lines, Lines]:
    """The lines of a session whose process was killed while an answer was streamed: messages 1 to 9 and the calls of
    three turns are in the document, 10 to 12 and the beginning of 13 in the journal."""

    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn in range(FOLDED + 1):
            if turn == FOLDED:
                await service.save_session(session_id)
            await service.record_message(session_id, said(f"question {turn}"))
            await service.record_text(session_id, TextPart, f"answer {turn}")
            parts = (TextPart(text=f"answer {turn}"), ToolCallPart(id=f"c{turn + 1}"))
            sent = await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT))
            await service.record_tool_call(session_id, call(f"c{turn + 1}", message_id=sent.id, result="found"))
            result = (ToolResultPart(id=f"c{turn + 1}"),)
            await service.record_message(session_id, Message(role="tool", parts=result, timestamp=AT))
        await service.record_text(session_id, TextPart, STREAMED)
        return session_id

    session_id = run(work)
    return session_id, *(
        path.read_bytes().splitlines() for path in (home.document(session_id), home.journal(session_id))
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> tuple[str, Lines, Lines]:
    return record_killed(Home(tmp_path_factory.mktemp("sound")))


def swap(lines: Lines, one: int, other: int) -> Lines:
    found = list(lines)
    found[one], found[other] = found[other], found[one]
    return found


class Place:
    """A home with this one session, and the command in it."""

    def __init__(self, runner: Runner, session_id: str, document: Lines, journal: Lines) -> None:
        self.runner, self.session_id, self.home = runner, session_id, Home(runner.home)
        self.files = b"\n".join(document) + b"\n", b"\n".join(journal)
        self.home.sessions.mkdir(parents=True, exist_ok=True)
        self.home.document(session_id).write_bytes(self.files[0])
        self.home.journal(session_id).write_bytes(self.files[1])

    async def export(self) -> tuple[list[tuple[int, str]], str]:
        """The numbers and words of the messages, and what is told."""
        done = await self.runner.run("sessions", "export", self.session_id, "--format", "json", "-o", "-")
        messages: list[dict[str, Any]] = json.loads(done.out)["messages"]
        words = [(found["id"], "".join(part.get("text", "") for part in found["parts"])) for found in messages]
        return [word for word in words if word[1]], done.err

    def list_kept(self) -> list[Path]:
        return [path for path in self.home.sessions.iterdir() if path.read_bytes() in self.files]


NUMBERS = [number for turn in range(FOLDED + 1) for number in (3 * turn + 1, 3 * turn + 2)] + [13]
WHOLE = list(zip(NUMBERS, TEXTS, strict=True))


@covers("S9.3", "P7")
async def test_a_kill_between_rewriting_the_document_and_removing_the_journal_doubles_nothing(tmp_path, sound) -> None:
    session_id, document, journal = sound
    async with running(tmp_path, ["Going on."]) as runner:
        place = Place(runner, session_id, swap(document, 4, 8), journal)
        assert (await runner.run("sessions", "check", "--repair")).code == 0
        assert await place.export() == (WHOLE, "")
        place.home.journal(session_id).write_bytes(place.files[1])
        assert await place.export() == (WHOLE, "")
        assert (await runner.run("sessions", "check")).code == 0
        assert (await runner.run("-p", "go on", "--session", session_id)).code == 0
        texts = [text for _, text in (await place.export())[0]]
        assert texts == [*TEXTS, "go on", "Going on."]
