"""One message or call from its bytes, however odd they are."""

import json

import msgspec
import pytest

from ollm.domain.messages import Message, TextPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.store.session_files.damage import MAX_DEPTH, DamageReport
from ollm.store.session_files.lenient import (
    find_calls_inside,
    find_messages_inside,
    is_deeper_than,
    parse_call,
    parse_message,
    parse_object,
    parse_strict_call,
    parse_strict_message,
    preserve_bytes,
)


def test_a_hole_of_zeros_inside_a_message_is_left_out_of_it_and_of_the_mended_file() -> None:
    from ollm.store.session_files.lenient import parse_object

    hole = b"\0" * 1000
    assert parse_object(b'{"role": "user", "text": "before ' + hole + b'after"}')["text"] == "before after"
    assert parse_object(b'{"text": "a zero: \\u0000"}')["text"] == "a zero: \0"


MESSAGE = b'{"role":"user","parts":[{"type":"text","text":"hi"}],"timestamp":"t","id":4}'
CALL = b'{"id":"c1","name":"ls","args":{},"timestamp":"t","status":"ok"}'


@pytest.mark.parametrize(
    ("data", "deeper"),
    [
        (b"", False),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, False),
        (b"[" * 100 + b"{}" + b"]" * 100, True),
        (b"[" * 99 + b"{}" + b"]" * 99, False),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), True),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), True),
        (b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, False),
        (b"[" + b"[]," * 500 + b"[]]", False),
        (json.dumps("[" * 500).encode(), False),
        (json.dumps(['a"\\' + "[{" * 500]).encode(), False),
        (b"[" * 500, False),  # no JSON at all
        (b"[" * 100_000 + b"]" * 100_000, True),
    ],
)
def test_how_deep_brackets_nest(data: bytes, deeper: bool) -> None:
    assert is_deeper_than(data) is deeper


def test_the_limit_of_depth_can_be_another() -> None:
    assert is_deeper_than(b'   {"a":[[1]]}', 2)
    assert not is_deeper_than(b'   {"a":[[1]]}', 3)


def test_a_message_and_a_call_that_are_as_they_should_be_are_taken_strictly() -> None:
    assert parse_strict_message(MESSAGE) == Message(role="user", parts=(TextPart(text="hi"),), timestamp="t", id=4)
    assert parse_strict_call(CALL) == ToolCallRecord(id="c1", name="ls", args={}, timestamp="t", status="ok")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        MESSAGE.replace(b'"id":4', b'"id":0'),
        MESSAGE.replace(b"hi", b"\xff"),
        MESSAGE[:-1],
        MESSAGE[:-1] + b',"x":' + b"[" * 101 + b"]" * 101 + b"}",
    ],
)
def test_a_message_with_anything_odd_about_it_is_not_taken_strictly(data: bytes) -> None:
    assert parse_strict_message(data) is None


@pytest.mark.parametrize(
    "data",
    [b"", CALL.replace(b',"status":"ok"', b""), CALL[:-1], CALL[:-1] + b',"x":' + b"[" * 101 + b"]" * 101 + b"}"],
)
def test_a_call_with_anything_odd_about_it_is_not_taken_strictly(data: bytes) -> None:
    assert parse_strict_call(data) is None


@pytest.mark.parametrize(
    ("data", "text", "noted"),
    [
        (b'{"role":"user","content":"old form","timestamp":"t"}', "old form", None),
        (b'{"role":"user","parts":["bare"],"timestamp":"t"}', "bare", None),
        (b'{"role":"user","parts":[{"type":"video","text":"seen"}]}', "seen", None),
        (b'{"role":"user","parts":[{"type":"video","url":"u"}]}', '{"type":"video","url":"u"}', None),
        (b'{"role":"user","parts":5}', "", "a message has no parts"),
        (b'{"role":"user","parts":"x","id":"seven"}', "x", None),
        (b'{"role":"user","content":"a\xffb"}', "a\ufffdb", "some characters are not UTF-8 and were replaced"),
        (
            b'{"role":"user","content":"a\nb"}',
            "a\nb",
            "some text is not valid JSON and was read as well as it could be",
        ),
    ],
)
def test_a_message_in_another_form_is_read(data: bytes, text: str, noted: str | None) -> None:
    damage = DamageReport()

    found = parse_message(data, 9, damage)

    assert found is not None
    assert (found.text, found.id, damage.text) == (text, 9, noted)


def test_a_message_keeps_a_number_of_its_own() -> None:
    damage = DamageReport()

    assert parse_message(MESSAGE, 9, damage) == parse_strict_message(MESSAGE)
    assert damage.text is None


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"parts":[]}', b'{"role":"robot","parts":[]}', b'"text"'])
def test_a_message_that_is_none_is_lost_and_that_is_said(data: bytes) -> None:
    damage = DamageReport()

    assert parse_message(data, 9, damage) is None
    assert damage.text == "message 9 cannot be read (1 entry could not be read)"


def test_a_message_nested_too_deep_is_refused() -> None:
    damage = DamageReport()
    data = MESSAGE[:-1] + b',"x":' + b"[" * 101 + b"]" * 101 + b"}"

    assert parse_message(data, 2, damage) is None
    assert damage.too_large
    assert "message 2 is nested too deep" in damage.notes


def test_a_call_nested_too_deep_is_refused() -> None:
    damage = DamageReport()

    assert parse_call(CALL[:-1] + b',"x":' + b"[" * 101 + b"]" * 101 + b"}", damage) is None
    assert damage.too_large
    assert "a tool call is nested too deep" in damage.notes


@pytest.mark.parametrize(
    ("fields", "args", "result", "status"),
    [
        ({}, {}, None, "interrupted"),
        ({"result": "text"}, {}, "text", "ok"),
        ({"result": {"llmContent": "text"}}, {}, "text", "ok"),
        ({"result": {"llmContent": [1]}}, {}, "[1]", "ok"),
        ({"result": 5}, {}, None, "interrupted"),
        ({"args": "ls -l"}, {"value": "ls -l"}, None, "interrupted"),
        ({"status": "failed", "result": "bad"}, {}, "bad", "failed"),
        ({"args": {"a": 1}, "status": "running"}, {"a": 1}, None, "running"),
    ],
)
def test_a_call_of_an_earlier_version_is_read(fields: dict, args: dict, result: str | None, status: str) -> None:
    damage = DamageReport()

    found = parse_call(json.dumps({"id": "c1", "name": "ls", **fields}).encode(), damage)

    kept = RecordedResult(llm_content=result) if result is not None else None
    assert found == ToolCallRecord(id="c1", name="ls", args=args, timestamp="", result=kept, status=status)
    assert damage.text is None


@pytest.mark.parametrize("data", [b"{", b"{}", b'{"id":1,"name":"ls"}'])
def test_a_call_that_is_none_is_lost_and_that_is_said(data: bytes) -> None:
    damage = DamageReport()

    assert parse_call(data, damage) is None
    assert damage.text == "a tool call cannot be read (1 entry could not be read)"


def test_messages_and_calls_are_found_inside_damage() -> None:
    data = b"garbage" + MESSAGE + b",,," + CALL + b'{"role":"user","content":"loose"}{"role":"user","content":"to'

    assert [(found.text, found.id, sound) for found, _, sound in find_messages_inside(data, 7)] == [
        ("hi", 4, False),
        ("loose", 7, False),
    ]
    assert [(found.id, inner, sound) for found, inner, sound in find_calls_inside(data)] == [("c1", CALL, False)]


def test_what_is_one_entry_itself_has_none_inside() -> None:
    assert list(find_messages_inside(MESSAGE, 1)) == []
    assert list(find_calls_inside(CALL)) == []


def test_a_message_inside_damage_that_is_itself_damaged_is_none() -> None:
    assert list(find_messages_inside(b'x{"role":"user","parts":"a\nb"}', 1)) == []


def test_what_is_nested_without_end_holds_no_entries() -> None:
    assert list(find_messages_inside(b'x{"id":' + b"[" * 200_000, 1)) == []


def test_sound_bytes_are_kept_and_others_written_anew_with_unknown_fields() -> None:
    known = parse_strict_message(MESSAGE)
    assert known is not None
    spaced = MESSAGE.replace(b":", b" : ")
    assert preserve_bytes(spaced, known) is spaced
    assert preserve_bytes(MESSAGE, known, sound=True) is MESSAGE

    broken = MESSAGE[:-1] + b',"mine":"\xff"}'
    assert msgspec.json.decode(preserve_bytes(broken, known, sound=True)) == {
        **msgspec.json.decode(MESSAGE),
        "mine": "\ufffd",
    }
    loose = MESSAGE.replace(b"hi", b"h\ni")
    assert msgspec.json.decode(preserve_bytes(loose, known))["parts"] == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize("data", [b"[]", b"1", b'"x"', b"{", b""])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_object(data)


def test_an_odd_object_is_read_with_its_text_cleaned() -> None:
    assert parse_object(b'{"a":"\\ud800 x"}') == {"a": "? x"}
    assert parse_object(b'{"a":"\t","b":[NaN]}')["a"] == "\t"


def test_a_part_that_cannot_be_read_takes_no_other_with_it() -> None:
    damage = DamageReport()
    parts = [None, {"type": "text", "text": "hi"}, {"type": "text", "text": None}, 5]

    found = parse_message(json.dumps({"role": "user", "parts": parts, "timestamp": "t", "id": 4}).encode(), 4, damage)

    assert found is not None
    assert found.parts == (TextPart("hi"),)
    assert "a part of a message cannot be read" in damage.text
