"""A document in any other layout, or a broken one, object by object."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ollm.store.session_files import scan as scanning
from ollm.store.session_files.damage import DamageReport
from ollm.store.session_files.scan import DocumentScan
from tests.sizes import size
from tests.store.session_files.foreign_sessions import FOREIGN, ID, go_on, write_foreign
from tests.store.sessions.support import Home


def test_a_file_in_another_layout_is_read_and_its_unknown_fields_survive(tmp_path):
    home = Home(tmp_path)
    write_foreign(home.sessions)
    loaded = home.files.read(ID)
    assert loaded.damage is None
    assert [message.id for message in loaded.session.messages] == [1, 2]
    assert [call.status for call in loaded.session.tool_calls] == ["ok", "interrupted"]
    assert loaded.session.metadata.token_count == 8500
    go_on(home, ID)
    document = json.loads(home.document(ID).read_bytes())
    assert document["future"] == [1, 2]
    assert document["metadata"]["own"] == {"kept": True}
    assert document["messages"][0]["x"] == 1
    assert home.texts(ID) == ["hello", "hi", "afterwards"]


@pytest.mark.slow
@pytest.mark.parametrize("filler", [b"[" * 1000, b"{}", b'"",', b'{"a":"', b"\\", b"9"])
def test_hostile_files_end_in_time(tmp_path, filler):
    home = Home(tmp_path)
    home.sessions.mkdir()
    home.document(ID).write_bytes(b'{"messages":[' + filler * (size(1_000_000, 8_000_000) // len(filler)))
    started = time.process_time()
    assert home.index().list_sessions()[0]["damaged"]
    assert time.process_time() - started < 10


def numbered(count: int) -> dict:
    parts = ([{"type": "text", "text": f"message {number}"}] for number in range(count))
    messages = [{"id": n, "role": "user", "parts": part, "timestamp": ""} for n, part in enumerate(parts, 1)]
    return {**FOREIGN, "messages": messages}


@pytest.mark.parametrize("indent", [None, 2])
def test_what_stands_behind_a_hole_in_a_foreign_document_is_read(tmp_path, indent):
    home = Home(tmp_path)
    text = json.dumps(numbered(6), indent=indent)
    start = text.index("message 2") + 3
    write_foreign(home.sessions, text[:start] + text[start + 9 :])

    loaded = home.files.read(ID)

    assert [message.text for message in loaded.session.messages] == [f"message {number}" for number in (0, 1, 3, 4, 5)]
    assert loaded.damage


def test_a_byte_order_mark_is_no_damage_and_neither_is_hidden_what_is(tmp_path):
    home = Home(tmp_path)
    text = json.dumps(numbered(3), indent=2)
    for given, damaged in (
        ("\ufeff" + text, None),
        (text + "more", "extra data after the end of the document"),
        (text.replace('"messages": [', '"messages": "none", "others": ['), "messages is not a list"),
    ):
        write_foreign(home.sessions, given)
        loaded = home.files.read(ID)
        assert (len(loaded.session.messages), loaded.damage) == (3, damaged)


MESSAGE = {"role": "user", "parts": [], "timestamp": "t", "id": 1}
CALL = {"id": "c1", "name": "ls", "args": {}}


def scan(path: Path, content: bytes | str) -> tuple[dict[str, Any], list[str], list[str], DamageReport]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    damage = DamageReport(patience=100)
    with path.open("rb") as file:
        found = DocumentScan(file, damage)
        messages, calls = (
            [entry.decode() for entry in found.iter_messages()],
            [entry.decode() for entry in found.iter_calls()],
        )
        assert found.read == sum(map(len, messages)) + sum(map(len, calls)) or not content.isascii()
    return found.head, messages, calls, damage


def test_a_whole_document_in_any_layout(tmp_path: Path) -> None:
    document = {"sessionId": "s", "messages": [MESSAGE], "toolCalls": [CALL], "mine": [1]}

    head, messages, calls, damage = scan(tmp_path / "f", json.dumps(document, indent=3))

    assert head == {"sessionId": "s", "mine": [1]}
    assert [json.loads(entry) for entry in messages] == [MESSAGE]
    assert [json.loads(entry) for entry in calls] == [CALL]
    assert damage.text is None


@pytest.mark.parametrize(
    ("content", "head", "messages", "calls", "damage"),
    [
        ("", {}, 0, 0, "the file is not a JSON document"),
        ("[1]", {}, 0, 0, "the file is not a JSON document"),
        ("{}", {}, 0, 0, "the file is not a session"),
        ('{"a":1}', {"a": 1}, 0, 0, "the file is not a session"),
        ('{"messages":[]}', {}, 0, 0, None),
        ('{"sessionId":"s"}', {"sessionId": "s"}, 0, 0, None),
        ('{"sessionId":"s","messages":[{"role":"user"}', {"sessionId": "s"}, 1, 0, "the file is truncated"),
        (
            '{"sessionId":"s","messages":[{"role":"user"}]} x',
            {"sessionId": "s"},
            1,
            0,
            "extra data after the end of the document",
        ),
        ('{"sessionId":"s","messages":5}', {"sessionId": "s"}, 0, 0, None),
        ('{"a":1,"messages":{}}x', {"a": 1}, 0, 0, "messages is not a list"),
        (
            '{"messages":[{"role":"user"},5,{"role":"user"}]}',
            {},
            2,
            0,
            "messages contains something that is not an object (1 entry could not be read)",
        ),
        ('{"a":"\n","messages":[{"role":"user"}],"toolCalls":[{"id":"c","args":{}}]}', {"a": "\n"}, 1, 1, None),
        ('nonsense {"role":"user"} and {"id":"c","args":{}} {"id":"x"}', {}, 1, 1, "the file is not a JSON document"),
        (
            'no {"role":"us\n"} {"id":1,"args":"\n"} {"id":"\n"} {"id":1,"args":1,"role":"\n"}',
            {},
            2,
            1,
            "the file is not a JSON document",
        ),
        (
            'no {"role":1} {"id":1,"args":1} {"id":1} {"id":1,"args":1,"role":1} {"role',
            {},
            2,
            1,
            "the file is not a JSON document",
        ),
        ('\ufeff{"sessionId":"s"} ', {"sessionId": "s"}, 0, 0, None),
        ('{"a":nonsense,"messages":[]}', {}, 0, 0, "the field 'a' cannot be read (1 entry could not be read)"),
    ],
)
def test_a_broken_document_gives_what_can_be_read(
    tmp_path: Path, content: str, head: dict, messages: int, calls: int, damage: str | None
) -> None:
    if content == '{"sessionId":"s","messages":5}':
        damage = "messages is not a list"
    found = scan(tmp_path / "f", content)

    assert (found[0], len(found[1]), len(found[2]), found[3].text) == (head, messages, calls, damage)


def test_what_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    *_, damage = scan(tmp_path / "f", '{"sessionId":"s","deep":' + "[" * 101 + "]" * 101 + "}")

    assert damage.too_large


def test_after_the_last_written_byte_nothing_is_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text('{"sessionId":"s","messages":[{"role":"user"}]}'.ljust(4096))
    with path.open("r+b") as file:
        file.truncate(1 << 20)
        damage = DamageReport()
        found = DocumentScan(file, damage)

    assert found.head == {"sessionId": "s"}
    assert damage.notes[0] == "nothing was ever written after byte 4096"


def test_of_a_file_over_the_limit_only_the_beginning_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_BYTES", 100)
    monkeypatch.setattr(scanning, "OVERSIZED_BYTES", 50)
    _, messages, _, _ = scan(tmp_path / "f", 'x{"role":"a"}' + " " * 40 + '{"role":"b"}' + " " * 60)

    assert messages == ['{"role":"a"}']


def test_looking_takes_only_so_long(tmp_path: Path) -> None:
    damage = DamageReport(patience=-1)
    (tmp_path / "f").write_text("x" + '{"role":"a"},' * 600)
    with (tmp_path / "f").open("rb") as file:
        found = DocumentScan(file, damage)

    assert damage.too_large
    assert len(list(found.iter_messages())) < 600
    assert damage.notes[0] == "the file takes too long to read"
