"""Events of a session, kept and sent."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from ollm.daemon.event_log import MAX_WAITING_EVENTS, EventLog, EventReader
from ollm.domain.events import TextDelta
from tests.daemon.running import Daemon, daemon
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


async def raw_events(found: Daemon, session: str, last: str, enough: int) -> list[list[str]]:
    """The first events of a stream, each as the lines it was sent in."""
    reader, writer = await asyncio.open_unix_connection(str(found.socket))
    request = f"GET /sessions/{session}/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {last}\r\n\r\n"
    writer.write(request.encode())
    content = b""
    while content.count(b"\n\n") < enough:
        content += await asyncio.wait_for(reader.read(65536), 10)
    writer.close()
    head, _, body = content.partition(b"\r\n\r\n")
    assert b"content-type: text/event-stream" in head
    lines = [line for line in body.decode().split("\r\n") if line.startswith("id: ")]
    return [line.rstrip("\n").split("\n") for line in lines]


async def test_an_event_is_sent_as_its_number_its_type_and_itself(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"]) as found:
        session = await found.open()
        said = await found.say(session, "hello")

        for last in ("0", "-1", "nonsense", "9" * 30):
            first, *_ = await raw_events(found, session, last, 3)
            assert first[0] == "id: 1", "what cannot be the number of an event is none"
        known = said[1]["seq"]
        found_again = await raw_events(found, session, str(known), len(said) - 2)

    assert [[name.partition(":")[0] for name in lines] for lines in found_again] == [["id", "event", "data"]] * (
        len(said) - 2
    )
    events = [json.loads(lines[2].removeprefix("data: ")) for lines in found_again]
    assert events == said[2:]
    for lines, event in zip(found_again, events, strict=True):
        assert lines[:2] == [f"id: {event['seq']}", f"event: {event['type']}"]
