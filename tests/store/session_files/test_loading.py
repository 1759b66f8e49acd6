"""Damaged, foreign, huge and newer files: a list never fails because of one, and everything readable is read."""

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.errors import DamagedError
from ollm.domain.messages import Message, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.library import check_sessions
from tests.covers import covers
from tests.store.session_files.foreign_sessions import FOREIGN, ID, go_on, write_foreign
from tests.store.sessions.support import AT, Home, call, many, run, said


@covers("S10.2", "D606", "D607", "H602")
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data + b"\0" * 4096,
        lambda data: data[:-300] + b"\0" * 300,
        lambda data: b"\0" * len(data),
        lambda data: b"",
        lambda data: b"not json at all",
        lambda data: data.replace(b"message 2", b"mess\xff\xfe 2"),
        lambda data: data.replace(b'"role":"user"', b'"role":"use', 1),
        lambda data: b"\0" * 120 + data[120:],
        lambda data: data.replace(b'"toolCalls"', b'"toolC\0lls"'),
        lambda data: data[::-1],
    ],
)
def test_a_damaged_document_hides_no_other_and_what_can_be_read_is_read(tmp_path, damage):
    home = Home(tmp_path)
    healthy, hurt = home.recorded("well"), home.recorded(*(f"message {number}" for number in range(5)))
    home.document(hurt).write_bytes(damage(home.document(hurt).read_bytes()))
    before = {path: path.read_bytes() for path in home.sessions.iterdir()}

    lines = {line["sessionId"]: line for line in home.index().list_sessions()}
    assert lines[healthy]["damaged"] is None
    assert lines[hurt]["damaged"]
    found = home.files.read(hurt)
    with home.files.open_reader(hurt) as stream:
        b"".join(stream.iter_document())
    assert found.damage
    assert lines[hurt]["messageCount"] == len(found.session.messages)
    assert {path: path.read_bytes() for path in home.sessions.iterdir()} == before, "reading changes no file"

    if not found.session.messages:
        with pytest.raises(DamagedError, match="left as it is"):
            go_on(home, hurt)
        assert {path: path.read_bytes() for path in home.sessions.iterdir()} == before, "there is nothing to go on from"
        return
    loaded = go_on(home, hurt)
    assert loaded.damage
    assert home.texts(hurt) == [message.text for message in found.session.messages] + ["afterwards"]
    kept = list(home.sessions.glob(f"{hurt}.json.damaged-*"))
    assert [path.read_bytes() for path in kept] == [before[home.document(hurt)]]


def test_a_journal_without_a_document_is_a_session(tmp_path):
    home = Home(tmp_path)

    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("hello"))
        home.crash(session_id)
        return session_id

    session_id = run(work)
    home.document(session_id).unlink()
    assert home.texts(session_id) == ["hello"]
    assert [line["messageCount"] for line in home.index().list_sessions()] == [1]
    go_on(home, session_id)
    assert home.texts(session_id) == ["hello", "afterwards"]


def test_a_session_of_a_newer_version_is_viewable_and_never_written(tmp_path):
    home = Home(tmp_path)
    newer = FOREIGN | {"metadata": FOREIGN["metadata"] | {"schemaVersion": 99}}
    newer["messages"] = [
        *FOREIGN["messages"],
        {"role": "user", "parts": [{"type": "hologram", "z": 1}], "timestamp": "2027-01-01T00:00:00Z"},
    ]
    write_foreign(home.sessions, json.dumps(newer))
    before = home.document(ID).read_bytes()
    assert home.texts(ID)[:2] == ["hello", "hi"]
    assert "hologram" in home.texts(ID)[2]
    with pytest.raises(DamagedError, match="newer version"):
        go_on(home, ID)
    assert home.document(ID).read_bytes() == before
    assert [path.name for path in home.sessions.iterdir()] == [f"{ID}.json"]


@pytest.mark.parametrize("depth", [101, 100_000])
@pytest.mark.parametrize("where", ["args", "top"])
def test_deep_nesting_is_read_or_told_and_kept_aside(tmp_path, depth, where):
    home = Home(tmp_path)
    nested = '{"a":' * depth + "1" + "}" * depth
    text = json.dumps(FOREIGN)
    text = text.replace('"args": {}', f'"args": {nested}') if where == "args" else text.replace("[1, 2]", nested)
    write_foreign(home.sessions, text)
    assert ("not valid JSON" in str(home.index().list_sessions()[0]["damaged"])) == (depth == 100_000)
    assert home.texts(ID) == ["hello", "hi"]
    go_on(home, ID)
    assert home.texts(ID) == ["hello", "hi", "afterwards"]
    assert text in [path.read_text() for path in home.sessions.glob("*.json.*")]


@pytest.mark.slow
def test_a_file_over_500_megabytes_is_listed_with_its_size_and_read_up_to_the_limit(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded(*(f"message {number}" for number in range(5)))
    os.truncate(home.document(session_id), 520_000_000)
    damaged = home.index().list_sessions()[0]["damaged"]
    assert "too large to read (520 MB)" in damaged
    assert home.texts(session_id) == [f"message {number}" for number in range(5)]
    with pytest.raises(DamagedError, match="too large"):
        go_on(home, session_id)


@covers("D607", "H741")
def test_check_reports_and_repair_mends_keeping_the_original(tmp_path):
    home = Home(tmp_path)
    healthy, hurt = home.recorded("well"), home.recorded("one", "two")
    damaged = home.document(hurt).read_bytes()[:-40]
    home.document(hurt).write_bytes(damaged)
    (home.sessions / f".{healthy}.json.99-abc.tmp").write_text("left by a crash")
    found = check_sessions(home.files, repair=False)
    assert {(finding.session_id, finding.outcome) for finding in found} == {(healthy, "damaged"), (hurt, "damaged")}
    assert home.document(hurt).read_bytes() == damaged
    assert {finding.outcome for finding in check_sessions(home.files, repair=True)} == {"mended"}
    assert check_sessions(home.files, repair=False) == []
    assert [path.read_bytes() for path in home.sessions.glob("*.damaged-*")] == [damaged]


def read_stream(home: Home, session_id: str) -> Any:
    return home.files.open_reader(session_id)


def test_what_the_user_said_is_found_inside_damage_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("one", "two", "three")
    document = home.document(session_id)
    place = document.read_bytes().index(b'{"role":"user","parts":[{"type":"text","text":"two"')
    document.write_bytes(document.read_bytes()[:place] + b"xx" + document.read_bytes()[place:])

    with read_stream(home, session_id) as stream:
        assert stream.read_user_words() == {1: "one", 2: "two", 3: "three"}


def test_the_results_of_several_calls_with_one_id_are_all_kept_and_told(tmp_path: Path) -> None:
    """In the document, in the journal, and in both: as other programs or mixed files have them."""

    async def record(folded: int) -> None:
        home = Home(tmp_path / str(folded))
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn in range(4):
            if turn == folded:
                await service.save_session(session_id)
            asked = Message(role="assistant", parts=(ToolCallPart(id="c1"),), timestamp=AT)
            sent = await service.record_message(session_id, asked)
            for result in (None, f"found {turn}"):
                await service.record_tool_call(session_id, call("c1", message_id=sent.id, result=result))
            answered = Message(role="tool", parts=(ToolResultPart(id="c1"),), timestamp=AT)
            await service.record_message(session_id, answered)
        home.crash(session_id)
        loaded = home.files.read(session_id)
        found = {one.id: one.result.llm_content for one in loaded.session.tool_calls if one.result}
        assert set(found.values()) == {f"found {turn}" for turn in range(4)}
        assert found["c1"] == "found 0"
        assert "several tool calls have the id c1" in str(loaded.damage)

    for folded in range(5):
        run(partial(record, folded))


def test_the_messages_of_two_documents_in_one_file_are_all_read_and_told(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first, second = home.recorded("one", "two", "three"), home.recorded("four", "five")
    both = [home.document(session_id).read_bytes() for session_id in (first, second)]
    indented = [msgspec.json.format(data, indent=1) for data in both]
    for pair in (both, indented, [both[0], indented[1]]):
        home.document(first).write_bytes(b"".join(pair))
        loaded = home.files.read(first)
        assert [message.text for message in loaded.session.messages] == ["one", "two", "three", "four", "five"]
        assert loaded.damage is not None
        assert "more than one document" in loaded.damage
        assert "could not be read" not in loaded.damage
    home.document(first).write_bytes(both[0] * 2)
    assert home.texts(first) == ["one", "two", "three"]


@pytest.mark.parametrize("indent", [-1, 1], ids=["on one line", "indented"])
def test_a_damaged_document_in_another_layout_takes_no_longer_for_each_message_if_it_is_long(
    tmp_path: Path, indent: int
) -> None:
    home = Home(tmp_path)

    def measure(count: int) -> float:
        session_id = many(home, ["x" * 900] * count)
        path = home.document(session_id)
        path.write_bytes(msgspec.json.format(path.read_bytes(), indent=indent)[:-100])
        begun = time.process_time()
        assert len(home.texts(session_id)) >= count - 1
        return (time.process_time() - begun) / count

    assert measure(12_000) < 4 * measure(1_000)


@pytest.mark.parametrize("line", [b'{"id":"x",\n', b'{"role":"user","parts":[],"id":7}'], ids=["broken", "one number"])
def test_many_broken_entries_take_no_longer_each_than_a_few(tmp_path: Path, line: bytes) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("one")

    def measure(count: int) -> float:
        home.document(session_id).write_bytes(line * count)
        begun = time.process_time()
        home.files.read(session_id)
        return (time.process_time() - begun) / count

    assert measure(16_000) < 6 * measure(1_000)
