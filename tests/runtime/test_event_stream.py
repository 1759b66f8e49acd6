"""Events are numbered, stamped and handed to everybody in order."""

import asyncio
from datetime import UTC, datetime

from ollm.domain.events import AnyEvent, Event, Notice, TurnFinished
from ollm.runtime.base import EventStream, NoticeQueue

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


def test_a_listener_hears_from_now_on_until_it_is_stopped_and_stopping_twice_is_once() -> None:
    stream = EventStream(lambda: NOW)
    stream.emit(notice("before"))
    one: list[AnyEvent] = []
    two: list[AnyEvent] = []
    stop, _ = stream.add_listener(one.append), stream.add_listener(two.append)
    stream.emit(notice("a"))
    stop()
    stop()
    stream.emit(notice("b"))

    assert [event.seq for event in one] == [2]
    assert [event.seq for event in two] == [2, 3]


def test_one_that_leaves_while_it_is_called_takes_no_event_from_the_others() -> None:
    stream = EventStream(lambda: NOW)
    heard: list[int] = []
    stop = stream.add_listener(lambda event: stop())
    stream.add_listener(lambda event: heard.append(event.seq))

    stream.emit(notice("a"))
    stream.emit(notice("b"))

    assert heard == [1, 2]


async def test_a_subscription_gives_everything_and_ends_when_it_is_closed() -> None:
    stream = EventStream(lambda: NOW)
    subscription = stream.subscribe()
    stream.emit(notice("a"))
    stream.emit(notice("b"))
    subscription.close()
    stream.emit(notice("late"))

    assert stream._listeners == []  # nothing is kept for one that nobody reads
    async with asyncio.timeout(10):
        assert [event.seq async for event in subscription] == [1, 2]


def test_notices_wait_in_order_are_told_once_and_a_warning_is_not_repeated() -> None:
    queue, told = NoticeQueue(), list[Event]()
    queue.warn_once("a")
    queue.add("info", "b")
    queue.warn("c")
    queue.emit_all(told.append)
    queue.warn_once("a")
    queue.warn("c")
    queue.emit_all(told.append)

    assert [(one.level, one.text) for one in told if isinstance(one, Notice)] == [
        ("warning", "a"),
        ("info", "b"),
        ("warning", "c"),
        ("warning", "c"),
    ]
