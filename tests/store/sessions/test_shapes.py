"""Lines of damaged sessions are taken by their shape, wherever they stand and whatever their number, and told once."""

import asyncio
from pathlib import Path

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.library import check_sessions
from tests.cli.running import running
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
    """A home with this one session."""

    def __init__(self, root: Path, session_id: str, document: Lines, journal: Lines) -> None:
        self.session_id, self.home = session_id, Home(root)
        self.files = b"\n".join(document) + b"\n", b"\n".join(journal)
        self.home.sessions.mkdir(parents=True, exist_ok=True)
        self.home.document(session_id).write_bytes(self.files[0])
        self.home.journal(session_id).write_bytes(self.files[1])

    def read(self) -> tuple[list[tuple[int, str]], str]:
        """The numbers and words of the messages, and what is told."""
        loaded = self.home.files.read(self.session_id)
        return [(found.id, found.text) for found in loaded.session.messages if found.text], loaded.damage or ""

    def list_kept(self) -> list[Path]:
        return [path for path in self.home.sessions.iterdir() if path.read_bytes() in self.files]

    def find_fault(self, *, missing: bool, whole: bool = True) -> str:
        """The first broken promise, or nothing."""
        words, told = self.read()
        found = check_sessions(self.home.files, repair=False)
        if sorted(text for _, text in words) != sorted(TEXTS) or not told:
            return f"{words} {told}"
        if whole and (words != WHOLE or ("missing from" in told) != missing):
            return f"{words} {told}"
        if [one.problem for one in found] != [told]:
            return f"found {found}, told {told}"
        check_sessions(self.home.files, repair=True)
        if len(self.list_kept()) != 2:
            return "an original is gone"
        return "" if self.read() == (words, "") else f"afterwards {self.read()}"


NUMBERS = [number for turn in range(FOLDED + 1) for number in (3 * turn + 1, 3 * turn + 2)] + [13]
WHOLE = list(zip(NUMBERS, TEXTS, strict=True))


@covers("S9.3", "P7")
async def test_a_kill_between_rewriting_the_document_and_removing_the_journal_doubles_nothing(tmp_path, sound) -> None:
    session_id, document, journal = sound
    async with running(tmp_path, ["Going on."]) as runner:
        place = Place(runner.home, session_id, swap(document, 4, 8), journal)
        assert (await runner.run("sessions", "check", "--repair")).code == 0
        assert place.read() == (WHOLE, "")
        place.home.journal(session_id).write_bytes(place.files[1])
        assert place.read() == (WHOLE, "")
        assert (await runner.run("sessions", "check")).code == 0
        assert (await runner.run("-p", "go on", "--session", session_id)).code == 0
        assert [text for _, text in place.read()[0]] == [*TEXTS, "go on", "Going on."]


def move(lines: Lines, one: int, place: int) -> Lines:
    found = list(lines)
    found.insert(place, found.pop(one))
    return found


def insert(lines: Lines, place: int, line: bytes) -> Lines:
    return [*lines[:place], line, *lines[place:]]


def change(lines: Lines, at: int, old: bytes, new: bytes) -> Lines:
    assert old in lines[at]
    return [line.replace(old, new) if place == at else line for place, line in enumerate(lines)]


OTHER_ID = b"00000000-0000-4000-8000-000000000000"
MIDDLE, CLOSE = b'],"toolCalls":[', b"]}"
DOCUMENTS = {  # the head is line 0, messages 1 to 9 are lines 1 to 9, the calls 11 to 13, the end is line 14
    "end swapped with a message": lambda lines: swap(lines, 14, 7),
    "end moved before a message": lambda lines: move(lines, 14, 7),
    "end twice": lambda lines: insert(lines, 7, CLOSE),
    "middle swapped with a message": lambda lines: swap(lines, 10, 5),
    "middle moved before a message": lambda lines: move(lines, 10, 5),
    "middle twice": lambda lines: insert(lines, 5, MIDDLE),
    "middle doubled": lambda lines: insert(lines, 10, MIDDLE),
    "head swapped with a message": lambda lines: swap(lines, 0, 4),
    "head last": lambda lines: move(lines, 0, 14),
    "head twice": lambda lines: insert(lines, 5, lines[0]),
    "message among the calls": lambda lines: move(lines, 4, 11),
    "last message among the calls": lambda lines: move(lines, 9, 11),
    "message behind the end": lambda lines: move(lines, 4, 14),
    "message before the head": lambda lines: move(lines, 4, 0),
    "call among the messages": lambda lines: move(lines, 11, 4),
    "another's id": lambda lines: [lines[0][:14] + OTHER_ID + lines[0][50:], *lines[1:]],
    "number is a word": lambda lines: change(lines, 5, b'"id":5}', b'"id":"five"}'),
    "number is a fraction": lambda lines: change(lines, 5, b'"id":5}', b'"id":5.5}'),
    "number of another": lambda lines: change(lines, 5, b'"id":5}', b'"id":2}'),
    "number of the next": lambda lines: change(lines, 5, b'"id":5}', b'"id":6}'),
    "number far off": lambda lines: change(lines, 5, b'"id":5}', b'"id":50}'),
}
JOURNALS = {  # lines: the question 10, a piece and the rest of 11, the call, the result 12, the streamed answer 13
    "question has an earlier number": lambda lines: change(lines, 0, b'"id":10}', b'"id":9}'),
    "question has a much earlier number": lambda lines: change(lines, 0, b'"id":10}', b'"id":4}'),
    "question has a later number": lambda lines: change(lines, 0, b'"id":10}', b'"id":93}'),
    "question has a number far off": lambda lines: change(lines, 0, b'"id":10}', b'"id":1300}'),
    "streamed answer has the place of another": lambda lines: change(lines, 5, b"[13,1]", b"[11,1]"),
    "streamed answer follows another": lambda lines: change(lines, 5, b"[13,1]", b"[11,3]"),
    "result gone": lambda lines: [*lines[:4], lines[5]],
    "records reversed": lambda lines: lines[::-1],
}


MOVED = {  # somebody wrote other numbers by hand: every word is kept and told, but not always where it stood
    "number of the next",
    "number far off",
    "question has a later number",
    "question has a number far off",
}


@covers("S10.2", "D606")
def test_lines_count_wherever_they_stand_and_whatever_their_number(tmp_path, sound) -> None:
    session_id, document, journal = sound
    faults = {}
    for at, kind in enumerate((*DOCUMENTS, *JOURNALS)):
        changed = DOCUMENTS[kind](document) if kind in DOCUMENTS else document
        lines = JOURNALS[kind](journal) if kind in JOURNALS else journal
        place = Place(tmp_path / str(at), session_id, changed, lines)
        faults[kind] = place.find_fault(missing=kind == "result gone", whole=kind not in MOVED)
    assert {kind: fault for kind, fault in faults.items() if fault} == {}


def test_a_bare_message_in_the_journal_is_read_and_a_torn_record_is_left_out(tmp_path, sound) -> None:
    session_id, document, journal = sound
    start = b'{"at":"2026-01-27T10:00:00.000Z","piece":[13,%d],"partial":[{"type":"text","text":"%s'
    lines = [document[9], *journal[:5], start % (1, b'half of it"}]}\n'), start % (2, b" and")]
    words, _ = Place(tmp_path, session_id, [*document[:9], *document[10:]], lines).read()
    assert [text for _, text in words] == [*TEXTS[:-1], "half of it"]


@covers("D606")
async def test_a_resume_refused_elsewhere_repairs_nothing(tmp_path, sound) -> None:
    session_id, document, journal = sound
    document = [document[0].replace(b'"workspace":null', b'"workspace":"/elsewhere"'), *swap(document, 4, 8)[1:]]
    async with running(tmp_path, []) as runner:
        place = Place(runner.home, session_id, document, journal)
        refused = await runner.run("-p", "go on", "--session", session_id)
        assert (refused.code, "belongs to /elsewhere" in refused.err) == (2, True), refused.err
        assert sorted(path.suffix for path in place.list_kept()) == [".journal", ".json"]


@covers("P7")
@pytest.mark.parametrize("damage", [b"\xb7", b"\xff" * 8, b"\0" * 9, b"\x01"])
@pytest.mark.parametrize("inside", [True, False])
def test_bad_bytes_in_an_open_answer_cost_none_of_its_other_words(tmp_path, sound, damage, inside) -> None:
    session_id, document, journal = sound
    last = journal[-1].replace(b"streamed ", b"streamed " + damage) if inside else journal[-1] + damage
    place = Place(tmp_path, session_id, document, [*journal[:-1], last])
    words, told = place.read()
    assert words[:-1] == WHOLE[:-1]
    assert all(word in words[-1][1] for word in STREAMED.split())
    assert "damaged" in told
    writer, _ = place.home.files.open(session_id)
    writer.close()
    assert place.files[1] in [path.read_bytes() for path in place.home.sessions.iterdir()]


OLDER_JOURNAL = """\
{"at":"2026-11-18T02:13:36.144Z","message":{"role":"user","parts":[{"type":"text","text":"write it"}],\
"timestamp":"2026-11-18T02:13:36.143Z","id":2},"tokens":3}
{"at":"2026-11-18T02:13:38.000Z","mark":{"previous":-1,"document":"1,2,3","head":{},"count":2,"last":2,"calls":0}}
{"at":"2026-11-18T02:13:38.991Z","piece":[3,1],"partial":[{"type":"text","text":"I write"}]}
{"at":"2026-11-18T02:13:39.048Z","message":{"role":"assistant","parts":[{"type":"text","text":" it."},\
{"type":"tool_call","id":"c1"}],"timestamp":"2026-11-18T02:13:39.047Z","id":3},"continues":true,"piece":[3,2]}
{"at":"2026-11-18T02:13:39.048Z","call":{"id":"c1","name":"write_file","args":{"path":"notes.txt"},\
"timestamp":"2026-11-18T02:13:39.047Z","result":null,"messageId":3,"status":"running","error":null}}
{"at":"2026-11-18T02:13:39.201Z","call":{"id":"c1","result":{"llmContent":"Created notes.txt."},"status":"ok"}}
{"at":"2026-11-18T02:13:39.207Z","message":{"role":"tool","parts":[{"type":"tool_result","id":"c1"}],\
"timestamp":"2026-11-18T02:13:39.207Z","id":4},"tokens":53}
{"at":"2026-11-18T02:13:42.182Z","piece":[5,1],"partial":[{"type":"text","text":"It is written in gr"}]}
"""


@covers("D607", "S9.3")
async def test_what_the_version_before_left_of_a_killed_chat_is_whole(tmp_path) -> None:
    """Its message went on where its records of the answer stopped."""
    words = ["first", "write it", "I write it.", "", "It is written in gr"]
    async with running(tmp_path, ["Going on."]) as runner:
        home = Home(runner.home)
        session_id = await asyncio.to_thread(home.recorded, "first")
        home.journal(session_id).write_text(OLDER_JOURNAL)
        assert (home.texts(session_id), home.files.read(session_id).damage) == (words, None)
        listed, viewed = [await runner.run("sessions", *line) for line in (["check"], ["view", session_id, "--unfold"])]
        assert (listed.code, "Created notes.txt." in viewed.out) == (0, True)
        assert "write it" in (await runner.run("sessions", "search", "write it")).out.replace("«", "").replace("»", "")
        assert (await runner.run("-p", "go on", "--session", session_id)).code == 0
        assert home.texts(session_id) == [*words, "go on", "Going on."]
        assert not list(home.sessions.glob("*damaged*"))
