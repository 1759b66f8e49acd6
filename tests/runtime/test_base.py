"""What front ends hold of a conversation: answers, events, mentions."""

import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.domain.context import Usage
from ollm.domain.events import (
    AnyEvent,
    Event,
    Notice,
    PrefillProgress,
    TextDelta,
    ThinkingDelta,
    TurnFinished,
)
from ollm.domain.messages import AnyPart, Message, Role, TextPart, ThinkingPart
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, ProgressPiece, TextPiece, ThinkingPiece
from ollm.runtime.base import (
    EventStream,
    Status,
    TurnReport,
    get_recap_end,
)
from ollm.runtime.mentions import describe_missing, find_mentions, locate, looks_like_path, suggest_neighbour
from ollm.runtime.turn_calls import StreamedAnswer


@pytest.mark.parametrize(
    ("turn_after", "turn_message", "end"),
    [(None, 0, None), (None, 4, None), (7, 0, None), (0, 4, 5), (7, 4, 5)],
)
def test_a_recap_ends_before_a_running_turn_that_is_written_down(
    turn_after: int | None, turn_message: int, end: int | None
) -> None:
    status = Status(
        session_id="s",
        title="",
        model="m",
        provider="p",
        base_url="",
        window=1,
        mode="code",
        approval="ask",
        workspace="/w",
        turn_after=turn_after,
        turn_message=turn_message,
    )

    assert get_recap_end(status) == end
    assert (status.used, status.limit, status.trigger, status.fixed) == (0, 0, 0, 0)  # before anything was counted


def message(role: Role, text: str) -> Message:
    return Message(role=role, parts=(TextPart(text),), timestamp="")


def report(*messages: Message) -> TurnReport:
    return TurnReport(session_id="s", messages=messages, calls=(), reason="answered")


def test_the_request_is_the_first_of_the_user_and_the_answer_the_last_text_of_the_model() -> None:
    made = report(
        message("system", "s"),
        message("user", "one"),
        message("user", "two"),
        message("assistant", "first"),
        message("assistant", "last"),
        Message(role="assistant", parts=(ThinkingPart("only thought"),), timestamp=""),
        message("tool", "t"),
    )

    assert made.request is not None
    assert (made.request.text, made.answer) == ("one", "last")


class Heard:
    """An answer and everything it told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.saved: list[object] = []
        self.checked: list[tuple[str, bool]] = []
        self.answer = StreamedAnswer(self.events.append, self.save)

    async def save(self, part: type[AnyPart], text: str) -> None:
        self.saved.append((part, text, len(self.events)))

    async def read(self, *pieces: AnyPiece, check: Callable[[str, bool], None] | None = None) -> StreamedAnswer:
        async def stream() -> AsyncIterator[AnyPiece]:
            for piece in pieces:
                yield piece

        await self.answer.read(stream(), check or (lambda text, thinking: self.checked.append((text, thinking))))
        return self.answer


async def test_pieces_become_events_parts_and_the_end() -> None:
    heard = Heard()
    call = CallPiece("ls", {})

    answer = await heard.read(
        ProgressPiece(processed=1, total=5, stage="reading", seconds_left=2.5),
        ThinkingPiece("h"),
        ThinkingPiece("m"),
        TextPiece("a"),
        TextPiece("b"),
        ThinkingPiece("again"),
        call,
        FinishPiece("stop", Usage(prompt_tokens=3)),
    )

    assert answer.parts == (ThinkingPart("hm"), TextPart("ab"), ThinkingPart("again"))
    assert (answer.text, answer.calls) == ("ab", [call])
    assert answer.end == FinishPiece("stop", Usage(prompt_tokens=3))
    assert [type(event) for event in heard.events] == [
        PrefillProgress,
        ThinkingDelta,
        ThinkingDelta,
        TextDelta,
        TextDelta,
        ThinkingDelta,
    ]
    assert heard.events[0] == PrefillProgress(processed=1, total=5, stage="reading", seconds_left=2.5)
    assert heard.checked == [("h", True), ("m", True), ("a", False), ("b", False), ("again", True)]


async def test_text_is_saved_before_it_is_shown() -> None:
    heard = Heard()
    await heard.read(ThinkingPiece("h"), TextPiece("a"), TextPiece("b"), FinishPiece())

    assert heard.saved == [(ThinkingPart, "h", 0), (TextPart, "a", 1), (TextPart, "b", 2)]


async def test_a_check_that_stops_it_leaves_what_was_said() -> None:
    def stop(text: str, thinking: bool) -> None:
        if text == "b":
            raise ValueError("enough")

    heard = Heard()
    with pytest.raises(ValueError, match="enough"):
        await heard.read(TextPiece("a"), TextPiece("b"), TextPiece("c"), check=stop)

    assert heard.answer.text == "ab"


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def notice(text: str, session_id: str = "") -> Notice:
    return Notice(level="info", text=text, session_id=session_id)


def test_events_get_session_number_and_time() -> None:
    stream = EventStream(lambda: NOW)
    heard: list[AnyEvent] = []
    stream.add_listener(heard.append)
    stream.emit(notice("a", "from elsewhere"))
    stream.session_id = "s1"
    stream.emit(notice("b", "from elsewhere"))

    assert [(event.session_id, event.seq, event.timestamp) for event in heard] == [
        ("from elsewhere", 1, "2026-01-02T03:04:05.000Z"),
        ("s1", 2, "2026-01-02T03:04:05.000Z"),
    ]
    assert stream.last_seq == 2


def test_what_went_wrong_is_told_without_secrets() -> None:
    stream = EventStream(lambda: NOW, redact=lambda text: text.replace("sesame", "[redacted]"))
    heard: list[AnyEvent] = []
    stream.add_listener(heard.append)
    for event in (
        Notice(level="error", text="no sesame"),
        Notice(level="warning", text="sesame again"),
        Notice(level="info", text="sesame seeds"),
        TurnFinished(reason="model-error", message="sesame?"),
        TurnFinished(reason="answered"),
    ):
        stream.emit(event)

    told = [event.text if isinstance(event, Notice) else event.message for event in heard]  # type: ignore[union-attr]
    assert told == ["no [redacted]", "[redacted] again", "sesame seeds", "[redacted]?", ""]


def test_one_that_leaves_while_it_is_called_takes_no_event_from_the_others() -> None:
    stream = EventStream(lambda: NOW)
    heard: list[int] = []
    stop = stream.add_listener(lambda event: stop())
    stream.add_listener(lambda event: heard.append(event.seq))

    stream.emit(notice("a"))
    stream.emit(notice("b"))

    assert heard == [1, 2]


def test_names_are_found_at_the_beginning_of_words_once_each(tmp_path: Path) -> None:
    (tmp_path / "odd.").touch()
    text = 'see @a.py, (@b/c) and @"two words.txt" not me@home nor @a.py; @odd. @end.'

    assert find_mentions(text, tmp_path) == ["a.py", "b/c", "two words.txt", "odd.", "end"]
    assert find_mentions("no at sign", tmp_path) == []


def test_a_name_may_have_a_quote_or_an_at_sign_in_it_where_there_is_such_a_file(tmp_path: Path) -> None:
    for name in ('q"uote.py', "a@b.txt"):
        (tmp_path / name).touch()

    assert find_mentions('@q"uote.py, @a@b.txt @c"d @e@f (@g,(@h', tmp_path) == [
        'q"uote.py', "a@b.txt", "c", "e", "g,(", "h"
    ]  # fmt: skip


def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    assert find_mentions(f"@{'n' * 5000}", tmp_path) == ["n" * 5000]
    assert not locate("n" * 5000, tmp_path)
    assert not locate("a\0b", tmp_path)
    assert [name for name in ("src/a", "a.py", "alice", "...") if looks_like_path(name)] == ["src/a", "a.py"]


def test_a_mistyped_name_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    for name in ("Makefile", "src/cart.py", ".env", "odd\u202ename"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / os.fsdecode(b"cart\xff")).touch()

    def say(name: str) -> str:
        return describe_missing(name, tmp_path)

    assert say("Makefle") == "no such file; did you mean @Makefile?"
    assert say("scr") == "no such file; did you mean @src?"
    assert say("src/crat.py") == "no such file; did you mean @src/cart.py?"
    assert [say(name) for name in ("alice", "env", "...", "", "n" * 5000, "a\0b", "oddname", "~bob")] == [""] * 8
    assert [say(name) for name in ("gone.py", "src/", "nowhere/cart.py", "../x/cart.py")] == ["no such file"] * 4


def test_outside_the_workspace_nothing_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "cart.py").touch()

    assert suggest_neighbour("../crat.py", tmp_path / "inside") == ""
    assert suggest_neighbour("crat.py", tmp_path) == "cart.py"
    assert suggest_neighbour("inside/", tmp_path) == ""
