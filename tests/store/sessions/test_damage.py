"""Damage generated kind by kind to documents and journals: every message that can still be read is read, by view, export
and resume; what cannot be read is reported, and no byte of a damaged file disappears."""

import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.errors import DamagedError
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.library import check_sessions
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.damage_kinds import EVERY, JOURNALS, UNREADABLE
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, run, said

FOLDED_TURNS, TURNS = 3, 6  # so many of them are in the document, the rest in the journal
WORDS = [text for turn in range(TURNS) for text in (f"question {turn} grün", f"answer {turn}, at length")]
Lines = list[bytes]


class Files(NamedTuple):
    """A session's two files."""

    document: bytes
    journal: bytes


def record_session(home: Home, folded: int = FOLDED_TURNS) -> tuple[str, Files]:
    """A session whose last turns are in the journal, as a killed process leaves them."""

    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn, (question, answer) in enumerate(zip(WORDS[::2], WORDS[1::2], strict=True)):
            if turn == folded:
                await service.save_session(session_id)
            await service.record_message(session_id, said(question))
            await service.record_text(session_id, TextPart, answer[:5])
            asked = (TextPart(text=answer), ToolCallPart(id=f"c{turn}"))
            sent = await service.record_message(session_id, Message(role="assistant", parts=asked, timestamp=AT))
            await service.record_tool_call(session_id, call(f"c{turn}", message_id=sent.id))
            await service.record_tool_call(session_id, call(f"c{turn}", message_id=sent.id, result=f"found {turn}"))
            result = (ToolResultPart(id=f"c{turn}"),)
            await service.record_message(session_id, Message(role="tool", parts=result, timestamp=AT))
        return session_id

    session_id = run(work)
    return session_id, Files(home.document(session_id).read_bytes(), home.journal(session_id).read_bytes())


class DamagedSession:
    """One session with damaged files, in a home of its own."""

    def __init__(self, root: Path, session_id: str, files: Files) -> None:
        self.home, self.session_id, self.files = Home(root), session_id, files
        self.home.sessions.mkdir(parents=True)
        self.home.document(session_id).write_bytes(files.document)
        if files.journal:
            self.home.journal(session_id).write_bytes(files.journal)

    def read(self) -> tuple[list[str], str | None]:
        loaded = self.home.files.read(self.session_id)
        return [message.text for message in loaded.session.messages if message.text], loaded.damage

    def resume(self) -> list[str]:
        async def work() -> None:
            service = self.home.service()
            await service.open_session(self.session_id)
            await service.record_message(self.session_id, said("going on"))
            await service.close_session(self.session_id)

        run(work)
        return self.read()[0]

    def is_kept(self) -> bool:
        """Whether the bytes of both files are still there under some name."""
        found = [path.read_bytes() for path in self.home.sessions.iterdir() if path.suffix != ".lock"]
        return self.files.document in found and (not self.files.journal or self.files.journal in found)

    def find_fault(self, readable: set[str]) -> str:
        """The first broken promise, or nothing. `readable` are the texts that stand in the files whole."""
        texts, damage = self.read()
        if self.home.document(self.session_id).read_bytes() != self.files.document:
            return "reading changed the document"
        if missing := readable - set(texts):
            return f"not read: {sorted(missing)} ({damage})"
        if set(WORDS) - set(texts) and not damage:
            return f"lost without a word: {sorted(set(WORDS) - set(texts))}"
        try:
            after = self.resume()
        except DamagedError:
            return "" if self.is_kept() else "refused, and bytes are gone"
        if after[-1:] != ["going on"] or (lost := set(texts) - set(after)):
            return f"resuming lost {lost or 'what was said'}"
        if set(WORDS) - set(after) and not self.is_kept():
            return "something is missing, and the damaged file is gone"
        again = self.read()[1]
        return f"told again: {again}" if again else ""


def change_lines(change: Callable[[Lines], Lines]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def change_last(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return change_lines(lambda lines: [*lines[:-1], change(lines[-1])])


def swap_entries(lines: Lines) -> Lines:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def without_feed(data: bytes) -> bytes:
    return data.removesuffix(b"\n")


def join_at(place: int) -> Callable[[bytes], bytes]:
    return change_lines(lambda lines: [line[:-1] if at == place else line for at, line in enumerate(lines)])


def shuffle(lines: Lines) -> Lines:
    return random.Random(5).sample(lines, len(lines))


def reverse(lines: Lines) -> Lines:
    return lines[::-1]


def by_messages(change: Callable[[Lines], Lines]) -> Callable[[bytes], bytes]:
    """Change the order of the journal's messages, each with what belongs to it."""

    def damage(data: bytes) -> bytes:
        groups: Lines = [b""]
        for line in data.splitlines(keepends=True):
            groups[-1] += line
            if b'"message":' in line:
                groups.append(b"")
        return b"".join(change(groups))

    return damage


def indent(blank: str) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(json.loads(data), indent=blank, ensure_ascii=False).encode()


def change_messages(change: Callable[[dict], object]) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        document = json.loads(data)
        for message in document["messages"]:
            change(message)
        return json.dumps(document).encode()

    return damage


ROLES = {"user": "USER", "assistant": " Assistant\n", "tool": "Tool"}
DOCUMENT_KINDS: dict[str, Callable[[bytes], bytes]] = {
    "head line gone": change_lines(lambda lines: lines[1:]),
    "last line gone": change_lines(lambda lines: lines[:-1]),
    "middle line gone": change_lines(lambda lines: [line for line in lines if b"toolCalls" not in line]),
    "line feeds gone": lambda data: data.replace(b"\n", b""),
    "line feeds as CR": lambda data: data.replace(b"\n", b"\r"),
    "blank lines between": lambda data: data.replace(b"\n", b"\n\n"),
    "entries swapped": change_lines(swap_entries),
    "entry twice": change_lines(lambda lines: [*lines[:3], lines[2], *lines[3:]]),
    "entries without commas": lambda data: data.replace(b"},\n{", b"}\n{"),
    "tabs": indent("\t"),
    "odd roles": change_messages(lambda message: message.update(role=ROLES[message["role"]])),
    "unknown roles": change_messages(lambda message: message.update(role="wizard")),
    "ids as text": change_messages(lambda message: message.update(id=str(message["id"]))),
    "ids reversed": change_messages(lambda message: message.update(id=100 - message["id"])),
    "ids far off": change_messages(lambda message: message.update(id=message["id"] + 10**9)),
    "ids negative": change_messages(lambda message: message.update(id=-message["id"])),
    "ids shared": change_messages(lambda message: message.update(id=7)),
    "parts as text": change_messages(lambda message: message.update(parts=message["parts"][0].get("text", ""))),
    "UTF-8 mark": lambda data: b"\xef\xbb\xbf" + data,
    "escaped": lambda data: json.dumps(json.loads(data)).encode(),
    "twice": lambda data: data + data,
    "trailing text": lambda data: data + b"<html>502</html>",
    "leading text": lambda data: b"$ cat\n" + data,
    "zeros behind": lambda data: data + b"\0" * 4096,
    "zeros within words": lambda data: data.replace(b"question 2", b"ques\0\0tion 2").replace(b"\n", b""),
}
JOURNAL_KINDS: dict[str, Callable[[bytes], bytes]] = {
    "no last line feed": without_feed,
    "line feeds gone": lambda data: data.replace(b"\n", b""),
    "line feeds as CR": lambda data: data.replace(b"\n", b"\r"),
    "line feeds as CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "blank lines between": lambda data: data.replace(b"\n", b"\n\n"),
    "first two joined": join_at(0),
    "middle two joined": join_at(7),
    "messages reversed": by_messages(reverse),
    "messages shuffled": by_messages(shuffle),
    "first message last": by_messages(lambda groups: [*groups[1:], groups[0]]),
    "twice": lambda data: data + data,
    "each record twice": change_lines(lambda lines: [line for line in lines for _ in range(2)]),
    "text between": lambda data: data.replace(b"\n", b"\nerror: disk\n", 3),
    "text glued in front": lambda data: data.replace(b'{"at"', b'??{"at"', 4),
    "text glued behind": lambda data: data.replace(b"}\n", b"}??\n", 4),
    "zeros between": lambda data: data.replace(b"\n", b"\n" + b"\0" * 64 + b"\n", 2),
    "zeros behind": lambda data: data + b"\0" * 512,
    "UTF-8 mark": lambda data: b"\xef\xbb\xbf" + data,
    "blanks around": lambda data: data.replace(b"\n", b"  \n  "),
    "odd roles": lambda data: data.replace(b'"user"', b'"User"').replace(b'"assistant"', b'"ASSISTANT"'),
    "indented": lambda data: b"".join(
        json.dumps(json.loads(line), indent=2).replace('{\n  "at": ', '{"at":').encode() + b"\n"
        for line in data.splitlines()
    ),
    "envelopes broken": lambda data: data.replace(b'{"at"', b'{"a\xff"'),
    "ids as text": lambda data: data.replace(b'"id":1', b'"id":"1"'),
    "times gone": lambda data: re.sub(rb'"at":"[^"]*",', b"", data),
    "tokens as text": lambda data: re.sub(rb'"tokens":\d+', b'"tokens": "many"', data),
    "unknown field": lambda data: data.replace(b'{"at"', b'{"colour":1,"at"'),
    "id far off": lambda data: re.sub(rb'"id":\d+},"tokens":\d+}\n$', b'"id":1000000000000}}\n', data),
    "other words": lambda data: re.sub(rb"(.*question )5(.*\n)", rb"\g<1>5\2\g<1>6\2", data),
    "message key": change_last(lambda line: line.replace(b'"message"', b'"messafe"')),
    "call keys": lambda data: data.replace(b'"call"', b'"cbll"'),
    "all keys": lambda data: re.sub(rb'"(message|call|partial)":', b'"hologram":', data),
    "end zeroed": lambda data: data[:-300] + b"\0" * 300,
    "all zeroed": lambda data: b"\0" * len(data),
    "last two torn": change_lines(lambda lines: [*lines[:-2], lines[-2][:-20], lines[-1][:-20]]),
}
CHANGES_ORDER = {"messages reversed", "messages shuffled"}
LOSES_RECORDS = {"ids as text", "message key", "call keys", "all keys"} | {
    "end zeroed",
    "all zeroed",
    "last two torn",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> tuple[str, Files]:
    return record_session(Home(tmp_path_factory.mktemp("sound")))


@covers("S10.2", "D606")
def test_every_kind_of_damage_to_a_document_keeps_its_messages(tmp_path, sound) -> None:
    session_id, files = sound
    faults = {}
    for place, (kind, damage) in enumerate(DOCUMENT_KINDS.items()):
        damaged = DamagedSession(tmp_path / str(place), session_id, files._replace(document=damage(files.document)))
        faults[kind] = damaged.find_fault(set(WORDS))
    assert {kind: fault for kind, fault in faults.items() if fault} == {}


@covers("S10.2", "D606")
def test_every_kind_of_damage_to_a_journal_keeps_its_messages(tmp_path, sound) -> None:
    session_id, files = sound
    faults = {}
    for place, (kind, damage) in enumerate(JOURNAL_KINDS.items()):
        damaged = DamagedSession(tmp_path / str(place), session_id, files._replace(journal=damage(files.journal)))
        faults[kind] = damaged.find_fault(set() if kind in CHANGES_ORDER | LOSES_RECORDS else set(WORDS))
        if kind in ("other words", *LOSES_RECORDS) and not damaged.is_kept():
            faults[kind] = "the original is gone"
    assert {kind: fault for kind, fault in faults.items() if fault} == {}


def test_documents_damaged_beyond_their_entries_are_reported_and_kept(tmp_path, sound) -> None:
    session_id, files = sound
    faults = {}
    for place, (kind, damage) in enumerate(EVERY.items()):
        damaged = DamagedSession(tmp_path / str(place), session_id, files._replace(document=damage(files.document)))
        if kind not in ("no-user", "part-types-odd"):  # its words are gone, or have something added to them
            faults[kind] = damaged.find_fault(set(WORDS[2 * FOLDED_TURNS :]) if kind in UNREADABLE else set())
    for place, (kind, records) in enumerate(JOURNALS.items()):
        damaged = DamagedSession(tmp_path / f"j{place}", session_id, Files(files.document, files.journal + records))
        faults[kind] = damaged.find_fault(set(WORDS))
    assert {kind: fault for kind, fault in faults.items() if fault} == {}


@covers("P7")
def test_a_journal_cut_at_every_byte_keeps_every_record_that_is_whole(tmp_path) -> None:
    """Also at the byte before a line feed: the record was on the disk, and its message acknowledged."""
    session_id, files = record_session(Home(tmp_path / "sound"), TURNS - 1)
    damaged = DamagedSession(tmp_path / "cut", session_id, files)
    ends = [0]
    for line in files.journal.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    expected = []
    for end in ends:
        damaged.home.journal(session_id).write_bytes(files.journal[:end])
        expected.append(damaged.home.files.read(session_id).session)
    for before, (start, end) in enumerate(pairwise(ends)):
        for cut in range(start, end + 1):
            damaged.home.journal(session_id).write_bytes(files.journal[:cut])
            loaded = damaged.home.files.read(session_id)
            whole = expected[before + (cut >= end - 1)]
            messages = loaded.session.messages
            if len(messages) > len(whole.messages):
                assert expected[before + 1].messages[-1].text.startswith(messages[-1].text), (
                    "of an answer, its beginning"
                )
                messages = messages[:-1]
            assert (messages, loaded.session.tool_calls) == (whole.messages, whole.tool_calls), cut
            assert loaded.damage is None, cut


@covers("P7", "S9.3")
def test_a_session_goes_on_behind_a_record_without_its_line_feed(tmp_path, sound) -> None:
    session_id, files = sound
    for place, cut in enumerate((len(files.journal) - 1, len(files.journal) - 9)):
        damaged = DamagedSession(tmp_path / str(place), session_id, files._replace(journal=files.journal[:cut]))
        assert damaged.resume() == [*WORDS, "going on"]
        assert not list(damaged.home.sessions.glob("*damaged*")), "a kill is no damage"


def drop_lines(begin: bytes, *numbers: int) -> Callable[[bytes], bytes]:
    """Remove the lines that begin so and have these places among them, as an editor would: with their commas."""

    def change(lines: Lines) -> Lines:
        places = [place for place, line in enumerate(lines) if line.startswith(begin)]
        gone = {places[number - 1] for number in numbers or range(1, len(places) + 1)}
        return [line for place, line in enumerate(lines) if place not in gone]

    return lambda data: change_lines(change)(data).replace(b",\n]", b"\n]")


def jump_from(number: int, by: int) -> Callable[[bytes], bytes]:
    def renumber(found: re.Match[bytes]) -> bytes:
        return b"%s%d%s" % (found[1], int(found[2]) + (by if int(found[2]) >= number else 0), found[3])

    return lambda data: re.sub(rb'("id":|"piece":\[)(\d+)([},])', renumber, data)


def unchanged(data: bytes) -> bytes:
    return data


ROLE = b'{"role":'
GAPS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes], str]] = {
    "nothing": (unchanged, unchanged, ""),
    "document gone": (lambda data: b"", unchanged, "messages 1 to 9 are missing"),
    "older document": (drop_lines(ROLE, 4, 5, 6, 7, 8, 9), unchanged, "messages 4 to 9 are missing"),
    "first message": (drop_lines(ROLE, 1), unchanged, "message 1 is missing"),
    "two messages": (drop_lines(ROLE, 2, 5), unchanged, "messages 2 and 5 are missing"),
    "many messages": (drop_lines(ROLE, 1, 3, 5, 7, 9), unchanged, "messages 1, 3, 5, 7 and 1 more are missing"),
    "calls": (drop_lines(b'{"id":'), unchanged, "3 tool calls are missing"),
    "a call": (drop_lines(b'{"id":', 2), unchanged, "1 tool call is missing"),
    "a call's end": (
        unchanged,
        change_lines(lambda lines: [line for line in lines if b"found 4" not in line]),
        "1 tool call is missing",
    ),
    "a message and calls": (
        lambda data: drop_lines(b'{"id":')(drop_lines(ROLE, 1)(data)),
        unchanged,
        "message 1 and 3 tool calls are missing",
    ),
    "journal's beginning": (unchanged, change_lines(lambda lines: lines[6:]), "messages 10 to 12 are missing"),
    "numbers jump": (unchanged, jump_from(12, 8), "messages 12 to 19 are missing"),
    "document cut, journal gone": (
        change_lines(lambda lines: [*lines[:5], lines[5][:20]]),
        lambda data: b"",
        "the file is truncated; messages 5 to 9 and 1 tool call are missing",
    ),
    "last message, journal gone": (drop_lines(ROLE, 9), lambda data: b"", "message 9 is missing"),
}


def place_gap(root: Path, session_id: str, files: Files, kind: str) -> tuple[DamagedSession, str]:
    change, change_journal, told = GAPS[kind]
    damaged = DamagedSession(root, session_id, Files(change(files.document), change_journal(files.journal)))
    if not damaged.files.document:
        damaged.home.document(session_id).unlink()
    return damaged, told


@covers("D606")
@pytest.mark.parametrize("kind", GAPS)
def test_what_is_missing_is_told_until_somebody_knows_it(tmp_path, sound, kind: str) -> None:
    damaged, told = place_gap(tmp_path, *sound, kind)
    texts, damage = damaged.read()
    assert (damage or "").count("missing from this session's files") == bool(told)
    assert told in (damage or "")
    stays = check_sessions(damaged.home.files, repair=False)
    assert [found.problem for found in stays] == [damage] * bool(told)
    assert [found.problem for found in check_sessions(damaged.home.files, repair=True)] == [damage] * bool(told)
    assert damaged.read() == (texts, None), "known from now on"
    assert damaged.resume() == [*texts, "going on"]
    assert damaged.read()[1] is None
    damaged.home.document(damaged.session_id).write_bytes(
        drop_lines(ROLE, 2)(damaged.home.document(damaged.session_id).read_bytes())
    )
    assert "missing" in str(damaged.read()[1]), "another gap is told"


@covers("S10.2", "D606")
async def test_every_command_tells_once_how_much_is_missing(tmp_path, sound) -> None:
    session_id, files = sound
    words = "messages 4 to 9 are missing from this session's files"
    async with running(tmp_path, ["Going on.", "Still here."]) as runner:
        damaged, _ = place_gap(runner.home, session_id, files, "older document")
        shown = [await runner.run("sessions", *line) for line in (["list"], ["check"], ["view", session_id])]
        assert [(done.out + done.err).count(words) for done in shown] == [1, 1, 1]
        resumed = await runner.run("-p", "go on", "--session", session_id)
        again = await runner.run("-p", "and on", "--session", session_id)
        after = [await runner.run("sessions", *line) for line in (["list"], ["check"], ["view", session_id])]
    assert (resumed.err.count(words), again.err.count(words)) == (1, 0)
    assert not any("missing" in done.out + done.err for done in after)
    assert damaged.read()[0] == [*WORDS[:2], *WORDS[6:], "go on", "Going on.", "and on", "Still here."]
    assert damaged.is_kept()


@covers("D606")
async def test_renaming_a_damaged_session_tells_what_is_missing(tmp_path, sound) -> None:
    async with running(tmp_path, []) as runner:
        place_gap(runner.home, *sound, "calls")
        renamed = await runner.run("sessions", "rename", sound[0], "Better")
        again = await runner.run("sessions", "rename", sound[0], "Best")
    assert ("3 tool calls are missing" in renamed.err, again.err) == (True, "")


@settings(max_examples=size(100, 3000), deadline=None)
@given(st.data())
def test_bytes_changed_anywhere_lose_nothing_without_a_word(tmp_path_factory, sound, data) -> None:
    session_id, files = sound
    name = data.draw(st.sampled_from(Files._fields))
    content = bytearray(getattr(files, name))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        change = data.draw(st.sampled_from(["flip", "drop", "double", "zero", "cut", "move"]))
        length = data.draw(st.integers(1, 200))
        if change == "flip":
            content[place] ^= 1 << (length % 8)
        elif change == "drop":
            del content[place : place + length]
        elif change == "double":
            content[place:place] = content[place : place + length]
        elif change == "zero":
            content[place : place + length] = b"\0" * len(content[place : place + length])
        elif change == "move":
            piece = content[place : place + length]
            del content[place : place + length]
            content[place // 2 : place // 2] = piece
        else:
            del content[max(place, len(content) // 2) :]
        content = content or bytearray(b"\n")
    changed = files._replace(**{name: bytes(content)})
    damaged = DamagedSession(tmp_path_factory.mktemp("changed") / "home", session_id, changed)
    texts, damage = damaged.read()
    whole = {text for text in WORDS if f'"text":"{text}"'.encode() in changed.document} if not damage else set()
    assert not [text for text in whole if not any(text in shown for shown in texts)]
    try:
        after = damaged.resume()
    except DamagedError:
        assert damaged.is_kept()
    else:
        assert set(texts) <= set(after)
        assert damage is None or damaged.is_kept()


async def view(runner: Runner, session_id: str) -> tuple[str, str]:
    """What the command shows and exports of a session."""
    viewed = await runner.run("sessions", "view", session_id)
    exported = await runner.run("sessions", "export", session_id, "-o", "-", "--format", "json")
    assert "Traceback" not in viewed.err + exported.err
    return viewed.out + viewed.err, exported.out


@covers("S10.2", "D606", "D607")
@pytest.mark.parametrize("kind", ["no last line feed", "messages reversed", "middle two joined", "odd roles"])
async def test_the_command_views_exports_and_resumes_a_damaged_session_whole(tmp_path, sound, kind: str) -> None:
    session_id, files = sound
    if kind in DOCUMENT_KINDS:
        files = files._replace(document=DOCUMENT_KINDS[kind](files.document))
    if kind in JOURNAL_KINDS:
        files = files._replace(journal=JOURNAL_KINDS[kind](files.journal))
    async with running(tmp_path, ["Going on."]) as runner:
        damaged = DamagedSession(runner.home, session_id, files)
        shown, exported = await view(runner, session_id)
        texts = {
            part["text"]
            for message in json.loads(exported)["messages"]
            for part in message["parts"][:1]
            if part["type"] == "text"
        }
        assert texts >= set(WORDS)
        assert all(text in shown for text in WORDS)
        assert damaged.home.document(session_id).read_bytes() == files.document
        resumed = await runner.run("-p", "go on", "--session", session_id)
        assert resumed.code == 0, resumed.err
        assert damaged.read()[0] == [*WORDS, "go on", "Going on."]
