"""A document in our own layout, line by line; a damaged line costs what cannot be read in it."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.store.session_files import document, lines
from ollm.store.session_files.damage import DamageReport
from ollm.store.session_files.document import SessionDocument, detect_own_layout, salvage_head
from ollm.store.session_files.layout import CLOSE, MIDDLE, OPEN
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, run, said

TURNS = 60


def asking(text: str, call_id: str) -> Message:
    return Message("assistant", (TextPart(text), ToolCallPart(call_id)), AT)


def recorded(home: Home) -> str:
    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn in range(1, TURNS + 1):
            await service.record_message(session_id, said(f"question {turn}"))
            answer = await service.record_message(session_id, asking(f"looking {turn}", f"c{turn}"))
            await service.record_tool_call(session_id, call(f"c{turn}", result="found", message_id=answer.id))
            await service.record_message(session_id, Message("tool", (ToolResultPart(id=f"c{turn}"),), AT))
        await service.close_session(session_id)
        return session_id

    return run(work)


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a few kilobytes counts as too long to be held."""
    monkeypatch.setattr(lines, "LONG_LINE_BYTES", 1024)
    monkeypatch.setattr(document, "MAX_LINE_BYTES", 2048)


@covers("S10.2", "D607")
@pytest.mark.parametrize("start", [0.1, 0.5, 0.9])
def test_lines_that_have_run_together_are_taken_apart_without_holding_them(tmp_path, short_lines, start):
    home = Home(tmp_path)
    session_id = recorded(home)
    whole = home.files.read(session_id)
    data = home.document(session_id).read_bytes()
    place = int(len(data) * start)
    home.document(session_id).write_bytes(data[:place] + data[place:].replace(b"\n", b" "))
    loaded = home.files.read(session_id)
    assert loaded.session.messages == whole.session.messages
    assert loaded.session.tool_calls == whole.session.tool_calls
    broken = data[:place].rfind(b"\n") + 1
    assert str(loaded.damage).split("; ")[1:2] == [f"merged lines at byte {broken}"]
    assert not loaded.read_only


def test_a_message_longer_than_any_line_that_is_held_is_read_and_nothing_is_wrong_with_it(tmp_path, short_lines):
    home = Home(tmp_path)
    long = 'so "many" words {"role":"user"} ' * 1000
    session_id = home.recorded("short", long, "short again")
    assert home.texts(session_id) == ["short", long, "short again"]
    assert home.files.read(session_id).damage is None


HEAD = b'{"sessionId":"s"'
ONE, TWO = b'{"role":"user","parts":[],"id":1}', b'{"role":"user","parts":[],"id":2}'
CALL_ONE = b'{"id":"c1","name":"ls"}'
WHOLE = HEAD + OPEN + ONE + b",\n" + TWO + b"\n" + MIDDLE + CALL_ONE + b"\n" + CLOSE


def read(path: Path, content: bytes) -> tuple[dict[str, Any], list[bytes], list[bytes], str | None]:
    path.write_bytes(content)
    damage = DamageReport()
    with path.open("rb") as file:
        first = detect_own_layout(file)
        assert first is not None
        found = SessionDocument(file, first, damage)
        return found.head, list(found.iter_messages()), list(found.iter_calls()), damage.text


def test_a_whole_document(tmp_path: Path) -> None:
    assert read(tmp_path / "f", WHOLE) == ({"sessionId": "s"}, [ONE, TWO], [CALL_ONE], None)


def test_calls_can_be_asked_for_before_the_messages(tmp_path: Path) -> None:
    for content in (WHOLE, WHOLE.replace(MIDDLE, b"]broken\n")):
        (tmp_path / "f").write_bytes(content)
        with (tmp_path / "f").open("rb") as file:
            first = detect_own_layout(file)
            assert first is not None
            assert list(SessionDocument(file, first, DamageReport()).iter_calls()) == [CALL_ONE]


def test_only_what_stands_between_two_places_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(WHOLE)
    second, call = WHOLE.index(TWO), WHOLE.index(CALL_ONE)
    with (tmp_path / "f").open("rb") as file:
        first = detect_own_layout(file)
        assert first is not None
        found = SessionDocument(file, first, DamageReport())
        found.narrow((second, WHOLE.index(MIDDLE)), (call, call))
        assert (list(found.iter_messages()), list(found.iter_calls())) == ([TWO], [])
        assert found.read == 0


TRUNCATED = "the file is truncated"


@pytest.mark.parametrize(
    ("content", "messages", "calls", "damage"),
    [
        (HEAD + OPEN + MIDDLE + CLOSE, [], [], None),
        (WHOLE[: -len(CLOSE)], [ONE, TWO], [CALL_ONE], TRUNCATED),
        (WHOLE[:-1], [ONE, TWO], [CALL_ONE], f"{TRUNCATED}; unreadable data at byte 139 (1 entry could not be read)"),
        (WHOLE[: WHOLE.index(TWO) + 10], [ONE, TWO[:10]], [], TRUNCATED),
        (WHOLE + b"x", [ONE, TWO], [CALL_ONE], f"{TRUNCATED}; extra data after the end of the file"),
        (WHOLE + CLOSE, [ONE, TWO], [CALL_ONE], "extra data after the end of the file"),
        (WHOLE + ONE + b"\n" + CLOSE, [ONE, TWO], [CALL_ONE], "extra data after the end of the file"),
        (WHOLE.replace(ONE + b",\n", ONE + b"\n"), [ONE, TWO], [CALL_ONE], "a comma is missing at byte 64"),
        (WHOLE.replace(TWO + b"\n", TWO + b",\n"), [ONE, TWO], [CALL_ONE], "a comma is too many at byte 100"),
        (WHOLE.replace(b'ls"}\n', b'ls"},\n'), [ONE, TWO], [CALL_ONE], "a comma is too many at byte 140"),
        (WHOLE.replace(MIDDLE, b""), [ONE, TWO], [CALL_ONE], "a comma is missing at byte 99"),
        (
            WHOLE.replace(TWO, b"rubbish\nmore rubbish"),
            [ONE],
            [CALL_ONE],
            "unreadable data at byte 65 (1 entry could not be read)",
        ),
        (
            WHOLE.replace(TWO, b"rubbish\n" + TWO + b"\nmore\nand more"),
            [ONE, TWO],
            [CALL_ONE],
            "unreadable data at byte 65; unreadable data at byte 107 (2 entries could not be read)",
        ),
        (
            WHOLE.replace(MIDDLE, b"]?\n"),
            [ONE, TWO],
            [CALL_ONE],
            "unreadable data at byte 99 (2 entries could not be read)",
        ),
        (WHOLE.replace(ONE, CALL_ONE), [TWO], [CALL_ONE, CALL_ONE], None),
        (WHOLE.replace(MIDDLE, MIDDLE + TWO + b",\n"), [ONE, TWO], [TWO, CALL_ONE], None),
        (WHOLE.replace(TWO, b"x" + TWO), [ONE, b"x" + TWO], [CALL_ONE], None),
        (WHOLE.replace(CALL_ONE, b"x" + CALL_ONE), [ONE, TWO], [b"x" + CALL_ONE], None),
    ],
)
def test_a_damaged_line_costs_what_cannot_be_read_in_it(
    tmp_path: Path, content: bytes, messages: list[bytes], calls: list[bytes], damage: str | None
) -> None:
    assert read(tmp_path / "f", content) == ({"sessionId": "s"}, messages, calls, damage)


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        (b'{"sessionId":"s","sessionId":"t"', True),
        (b'{"sessionId":"s","metadata":{"title":"a","title":"b"}', True),
        (b'{"sessionId":"s","messages":[]', True),
        (b'{"sessionId":"s","toolCalls":[]', True),
        (b'{"sessionId":"s","metadata":{"title":"a","x":{"title":"b"}}', False),
        (b'{"sessionId":"s","metadata":{"x":{"title":"a","title":"b"},"y":{"z":1}}', True),
        (b'{"sessionId":"s","metadata":{"x":1,"x":2}', False),
    ],
)
def test_a_head_that_names_one_of_its_fields_twice_is_told(tmp_path: Path, head: bytes, repeated: bool) -> None:
    _, messages, calls, damage = read(tmp_path / "f", WHOLE.replace(HEAD, head))

    assert (messages, calls) == ([ONE, TWO], [CALL_ONE])
    assert damage == ("the file header names something twice" if repeated else None)


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (WHOLE, True),
        (HEAD + b'broken\n{"role":"user"},\n', True),
        (HEAD + b'broken\n{"id":"c1"}\n', True),
        (b'{\n "a": 1\n}\n', False),
        (b"one line without an end", False),
        (b"", False),
        (HEAD + b"broken\nrubbish\n", False),
    ],
)
def test_our_layout_is_known_by_its_first_lines(tmp_path: Path, first: bytes, known: bool) -> None:
    (tmp_path / "f").write_bytes(first)
    with (tmp_path / "f").open("rb") as file:
        assert (detect_own_layout(file) is not None) is known


def test_a_damaged_head_gives_the_fields_that_can_be_read(tmp_path: Path) -> None:
    head, messages, _, damage = read(
        tmp_path / "f", WHOLE.replace(HEAD, b'{"sessionId":"s","model":"m",broken,"metadata":{"title":"t"}')
    )

    assert head == {"sessionId": "s", "model": "m", "metadata": {"title": "t"}}
    assert len(messages) == 2
    assert damage == "the file header is damaged (1 entry could not be read)"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (b"", {}),
        (b'{"metadata":{"a":1},"x', {"metadata": {"a": 1}}),
        (b'{"metadata":{"a":', {}),
        (b'{"metadata":' + b"[" * 101 + b"]" * 101 + b"}", {}),
        (b'{"metadata":' + b"[" * 200_000, {}),
        (b'{"sessionId":["x"],"provider":{"y":1}', {"sessionId": ["x"], "provider": {"y": 1}}),
    ],
)
def test_what_can_be_salvaged_of_a_head(text: bytes, head: dict[str, Any]) -> None:
    assert salvage_head(text) == head


def test_a_head_nested_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(WHOLE.replace(HEAD, HEAD + b',"deep":' + b"[" * 101 + b"]" * 101))
    damage = DamageReport()
    with path.open("rb") as file:
        first = detect_own_layout(file)
        assert first is not None
        SessionDocument(file, first, damage)

    assert damage.too_large


def test_a_line_too_long_to_be_held_that_begins_in_something_else_is_taken_apart_too(
    tmp_path: Path, short_lines: None
) -> None:
    long = b'{"role":"user","parts":[{"type":"text","text":"%s"}],"id":2}' % (b"x" * 5_000)
    other = b'{"a":"%s","role":"user"}' % (b"y" * 5_000)
    _, messages, _, damage = read(tmp_path / "f", WHOLE.replace(TWO, b"junk" + long))
    assert (messages, damage) == ([ONE, long], None)
    _, messages, _, damage = read(tmp_path / "f", WHOLE.replace(TWO, long + b"," + ONE))
    assert (messages, damage) == ([ONE, long, ONE], "merged lines at byte 65")
    _, messages, _, damage = read(tmp_path / "f", WHOLE.replace(TWO, other))
    assert messages == [ONE]
