"""Messages, sessions, events and errors as they are written."""

import typing
from datetime import datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain import errors
from ollm.domain.clock import format_stamp, parse_stamp
from ollm.domain.context import Checkpoint, Usage, format_number_ranges
from ollm.domain.errors import PromptTooLongError
from ollm.domain.events import AnyEvent, Notice, TextDelta, TurnFinished
from ollm.domain.messages import (
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    replace_surrogates,
)
from ollm.domain.session import Session, SessionMetadata
from tests.covers import covers

PARTS = (
    ThinkingPart("hm "),
    TextPart("I look "),
    ToolCallPart("c1"),
    TextPart("twice."),
    ToolCallPart("c2"),
    ThinkingPart("yes"),
)


def test_a_message_is_written_with_the_documented_names_and_without_defaults() -> None:
    message = Message(id=3, role="user", parts=(TextPart("x"), ImagePart("image/png", "AA==")), timestamp="t")

    assert msgspec.json.decode(msgspec.json.encode(message)) == {
        "id": 3,
        "role": "user",
        "parts": [{"type": "text", "text": "x"}, {"type": "image", "mediaType": "image/png", "data": "AA=="}],
        "timestamp": "t",
    }


def test_every_kind_of_part_reads_back() -> None:
    message = Message(role="assistant", parts=PARTS, timestamp="t", interrupted=True)

    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_bytes_that_are_not_utf_8_are_marked_and_all_else_stays() -> None:
    assert replace_surrogates("caf\udce9 日本 😀 é") == "caf\\xe9 日本 😀 é"
    assert replace_surrogates("plain") == "plain"


@covers("S2.1")
def test_a_session_is_written_under_its_documented_names() -> None:
    session = Session(
        session_id="s",
        start_time="a",
        last_activity="b",
        model="m",
        provider="p",
        messages=(),
        tool_calls=(),
        metadata=SessionMetadata(),
    )

    written = msgspec.json.decode(msgspec.json.encode(session))

    assert list(written) == [
        *("sessionId", "startTime", "lastActivity", "model", "provider", "messages", "toolCalls", "metadata"),
    ]
    assert written["metadata"]["tokenCount"] == 0
    assert written["metadata"]["compressionHistory"] == []


KINDS = typing.get_args(AnyEvent)


def test_an_event_names_its_type_and_writes_camel_case() -> None:
    written = msgspec.to_builtins(TurnFinished(session_id="s", seq=4, reason="answered", usage=Usage(prompt_tokens=9)))

    assert written["type"] == "turn-finished"
    assert (written["sessionId"], written["seq"]) == ("s", 4)
    assert written["usage"] == {"promptTokens": 9, "completionTokens": 0, "reusedTokens": 0}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_two_events_share_a_type(kind: type[msgspec.Struct]) -> None:
    tags = [other.__struct_config__.tag for other in KINDS]

    assert tags.count(kind.__struct_config__.tag) == 1
    assert kind.__struct_config__.tag == kind.__struct_config__.tag.lower()


def test_an_event_reads_back_as_what_it_was() -> None:
    for event in (TextDelta(text="é\u0000"), Notice(level="warning", text="x", seq=7)):
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("OllmError", 1),
        ("NotFoundError", 1),
        ("StorageError", 1),
        ("BusyError", 1),
        ("UsageError", 2),
        ("NoServerError", 3),
        ("ModelError", 4),
        ("UnknownModelError", 4),
        ("DeniedError", 5),
        ("ModelTimeoutError", 124),
    ],
)
def test_an_error_ends_the_command_with_its_code(error: str, code: int) -> None:
    assert getattr(errors, error)("x").exit_code == code


@pytest.mark.parametrize(
    ("prompt", "answer", "window", "only_answer"),
    [
        (1126, 7067, 8192, True),
        (9000, 100, 8192, False),
        (8192, 100, 8192, False),
        (0, 500, 0, True),
        (9000, 0, 8192, False),
    ],
)
def test_a_prompt_that_fits_needs_only_less_room_for_the_answer(
    prompt: int, answer: int, window: int, only_answer: bool
) -> None:
    error = PromptTooLongError("x", prompt_tokens=prompt, answer_tokens=answer, window=window)

    assert error.only_answer_too_long is only_answer


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((7,), "7"),
        ((1, 2, 3, 4), "1-4"),
        ((4, 2, 3, 1, 3), "1-4"),
        ((1, 2, 7, 9, 10), "1-2, 7, 9-10"),
        ((1, 3, 5, 7, 9), "1, 3, 5, 7, 9"),
        ((1, 3, 5, 7, 9, 11), "1-11"),
    ],
)
def test_numbers_are_cited_as_ranges_and_many_ranges_as_one(numbers: tuple[int, ...], text: str) -> None:
    assert format_number_ranges(numbers) == text


def checkpoint(*numbers: int) -> Checkpoint:
    return Checkpoint(id="c", text="They chose SQLite.", message_ids=numbers, timestamp="", tokens=5)


def test_a_checkpoint_stands_as_a_record_that_names_what_it_stands_for() -> None:
    message = checkpoint(1, 2, 3).message

    assert message.role == "system"
    assert "messages 1-3" in message.content
    assert "recall" in message.content
    assert message.content.endswith("\nThey chose SQLite.")
    assert message.sources == (1, 2, 3)


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=ZONES))  # noqa: DTZ001
def test_a_stamp_is_utc_with_milliseconds_and_reads_back_to_the_millisecond(moment: datetime) -> None:
    text = format_stamp(moment)

    assert len(text) == len("2026-01-27T10:00:00.000Z")
    assert text.endswith("Z")
    assert abs(parse_stamp(text) - moment) < timedelta(milliseconds=1)
    assert parse_stamp(text) <= moment
