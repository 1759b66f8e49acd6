"""Streams of events: of one session, and of all."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from ollm.daemon import event_log
from ollm.daemon.event_log import EventFeed, EventFrame, EventLog, EventReader
from ollm.domain.events import TextDelta
from tests.daemon.running import Daemon, Reply, daemon
from tests.servers.answers import Answer


def make_frame(text: str, session: str = "a") -> EventFrame:
    return EventFrame(TextDelta(text=text, seq=1, session_id=session, timestamp="t"))


def fill(log: EventLog, count: int) -> None:
    for number in range(1, count + 1):
        log.add(log.last + 1, make_frame(f"text {number}"))


async def take(reader: EventReader, count: int = 99) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(30), aclosing(aiter(reader)) as sent:
        async for piece in sent:
            found.append(piece.decode())
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize(("after", "seen"), [(0, [1, 2, 3, 4]), (2, [3, 4]), (3, [4]), (9, [1, 2, 3, 4])])
async def test_a_reader_gets_the_events_after_its_number_and_new_ones(after: int, seen: list[int]) -> None:
    log = EventLog()
    fill(log, 3)
    reader = log.open_reader(after)
    log.add(4, make_frame("text 4"))

    assert [sent.partition("\n")[0] for sent in await take(reader, len(seen))] == [f"id: {number}" for number in seen]


async def test_a_closed_log_ends_its_readers_and_gives_later_ones_what_it_has() -> None:
    log = EventLog()
    fill(log, 1)
    before = log.open_reader(0)
    log.close()
    after = log.open_reader(0)

    assert len(await take(before)) == len(await take(after)) == 1
    assert after not in log.readers


async def test_a_client_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_WAITING_EVENTS", 3)
    log = EventLog()
    slow = log.open_reader(0)
    fill(log, 3)
    assert log.readers == [slow]
    fill(log, 1)

    assert log.readers == []
    assert len(await take(slow)) == 3


async def test_a_silent_stream_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "PING_SECONDS", 0.01)
    assert await take(EventLog().open_reader(0), 2) == [": ping\n\n"] * 2


@pytest.mark.parametrize("steps", range(6))
async def test_a_stream_that_is_cancelled_as_an_event_comes_ends(steps: int) -> None:
    feed = EventFeed()
    reading = asyncio.create_task(take(feed.follow(f"{feed.run}-0", ())))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    fill(feed, 1)
    for _ in range(steps):
        await asyncio.sleep(0)

    reading.cancel()

    done, _ = await asyncio.wait({reading}, timeout=30)
    assert done == {reading}
    assert reading.cancelled()


@pytest.mark.parametrize("known", [None, "", "other-3", "RUN-9", "RUN-x", "RUN-1", "RUN"])
async def test_who_cannot_go_on_starts_with_the_turns_that_run(
    known: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "MAX_KEPT_EVENTS", 3)
    feed = EventFeed()
    fill(feed, 5)
    reader = feed.follow(known and known.replace("RUN", feed.run), [make_frame("running")])

    first, second = await take(reader, 2)

    assert first == f"id: {feed.run}-5\nevent: reset\ndata: {{}}\n\n"
    assert "running" in second
    assert "text 5" in (await take(feed.follow(f"{feed.run}-2", ()), 3))[2]


async def test_named_sessions_alone_are_sent() -> None:
    feed = EventFeed()
    reader = feed.follow(f"{feed.run}-0", (), frozenset({"b"}))
    feed.add(1, make_frame("not this"))
    feed.add(2, make_frame("this", "b"))

    assert '"this"' in (await take(reader, 1))[0]
    assert feed.has_listener("b") is False, "it was left"
    reader = feed.follow(None, (), frozenset({"b"}))
    assert feed.has_listener("b")
    assert not feed.has_listener("a")


async def test_a_client_that_goes_away_stops_nothing_and_comes_back_to_the_rest(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text=" ".join(str(n) for n in range(40)), pace=0.02), "hi"]) as found:
        session = await found.open()
        last = 0
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            async for event in events:
                last = event["seq"]
                if event["type"] == "text-delta":
                    break
        async with found.stream("GET", f"/sessions/{session}/events", last=last) as events:
            seen = await read_until(events, "turn-finished")
        said = await found.say(session, "hello")
        for unknown in ("0", "-1", "nonsense", "9" * 30):
            first, *_ = await raw_events(found, session, unknown, 3)
            assert first[0] == "id: 1", "an invalid number starts with the first event"
        again = await raw_events(found, session, str(said[1]["seq"]), len(said) - 2)

    assert [event["seq"] for event in seen] == list(range(last + 1, last + 1 + len(seen)))
    assert seen[-1]["reason"] == "answered"
    assert len(found.server.chats) == 2
    assert [json.loads(lines[2].removeprefix("data: ")) for lines in again] == said[2:]
    for lines, event in zip(again, said[2:], strict=True):
        assert lines[:2] == [f"id: {event['seq']}", f"event: {event['type']}"]


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


async def read_until(events: AsyncIterator[dict[str, object]], kind: str) -> list[dict[str, object]]:
    found = []
    async for event in events:
        found.append(event)
        if event.get("type") == kind:
            return found
    raise AssertionError(f"no {kind}")


async def test_two_sessions_share_one_stream_and_a_turn_under_way_is_told_from_its_beginning(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text="slow words here", pace=0.2), "quick"]) as found:
        other = tmp_path / "other"
        other.mkdir()
        first, second = await found.open(), await found.open(workspacePath=str(other))
        sent = await post_async(found, first, "slowly")
        assert (sent.status, sent.json["accepted"]) == (202, True)
        async with asyncio.timeout(60), found.stream("GET", "/events") as events:
            told = await read_until(events, "turn-finished")
            await post_async(found, second, "now")
            more = await read_until(events, "turn-finished")

    kinds = [event.get("type") for event in told]
    assert kinds.index("turn-started") < kinds.index("text-delta")
    assert {event["sessionId"] for event in told if "sessionId" in event} == {first}
    assert more[-1]["sessionId"] == second


async def post_async(found: Daemon, session: str, text: str) -> Reply:
    headers = {"content-type": "application/json", "prefer": "respond-async"}
    return await found.ask("POST", f"/sessions/{session}/messages", {"text": text}, headers=headers)
