"""The newest events of a session, for clients that come back."""

import asyncio
import gc
from contextlib import aclosing
from pathlib import Path

import pytest

from ollm.daemon.event_log import MAX_KEPT_EVENTS, MAX_WAITING_EVENTS, EventFrame, EventLog, EventReader
from ollm.domain.events import TextDelta
from tests.daemon.running import daemon
from tests.servers.answers import Answer


async def test_a_client_that_goes_away_stops_nothing_and_comes_back_to_the_rest(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text=" ".join(str(n) for n in range(40)), pace=0.02)]) as found:
        session = await found.open()
        last = 0
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            async for event in events:
                last = event["seq"]
                if event["type"] == "text-delta":
                    break
        seen = []
        async with found.stream("GET", f"/sessions/{session}/events", last=last) as events:
            async for event in events:
                seen.append(event)
                if event["type"] == "turn-finished":
                    break

    assert [event["seq"] for event in seen] == list(range(last + 1, last + 1 + len(seen)))
    assert seen[-1]["reason"] == "answered"
    assert len(found.server.chats) == 1


def event(number: int) -> TextDelta:
    return TextDelta(text=str(number), seq=number)


async def take(reader: EventReader, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(30), aclosing(aiter(reader)) as frames:
        async for frame in frames:
            found.append(frame.event.seq)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize(("after", "seen"), [(0, [1, 2, 3, 4]), (2, [3, 4]), (3, [4]), (9, [1, 2, 3, 4])])
async def test_a_reader_gets_what_came_after_the_number_it_names_and_what_comes(after: int, seen: list[int]) -> None:
    log = EventLog()
    assert log.last_seq == 0
    for number in (1, 2, 3):
        log.add(event(number))
    reader = log.open_reader(after)
    log.add(event(4))

    assert log.last_seq == 4
    assert await take(reader, len(seen)) == seen


async def test_only_the_newest_events_are_kept() -> None:
    log = EventLog()
    for number in range(1, MAX_KEPT_EVENTS + 3):
        log.add(event(number))

    assert (await take(log.open_reader(0), 2)) == [3, 4]


async def test_readers_are_counted_until_they_leave() -> None:
    log = EventLog()
    first, second = log.open_reader(0), log.open_reader(0)
    assert log.reader_count == 2
    log.add(event(1))
    assert await take(first, 1) == [1]
    assert log.readers == [second]
    log.release(second)
    assert log.reader_count == 0
    assert await take(second, 2) == [1]


async def test_a_reader_that_nobody_iterates_over_is_gone_at_once() -> None:
    log = EventLog()
    log.open_reader(0)
    gc.collect()

    assert log.reader_count == 0


async def test_a_closed_log_ends_its_readers_and_gives_later_ones_what_it_has() -> None:
    log = EventLog()
    log.add(event(1))
    before = log.open_reader(0)
    log.close()
    after = log.open_reader(0)

    assert await take(before, 5) == [1]
    assert await take(after, 5) == [1]
    assert after not in log.readers


async def test_a_client_that_does_not_read_is_let_go() -> None:
    log = EventLog()
    slow = log.open_reader(0)
    for number in range(1, MAX_WAITING_EVENTS + 1):
        log.add(event(number))
    assert log.reader_count == 1
    log.add(event(MAX_WAITING_EVENTS + 1))

    assert log.reader_count == 0
    assert len(await take(slow, MAX_WAITING_EVENTS + 5)) == MAX_WAITING_EVENTS


def test_an_event_is_put_into_bytes_once() -> None:
    frame = EventFrame(event(1))

    assert frame.data is frame.data
    assert frame.data.startswith(b"id: 1\n")
