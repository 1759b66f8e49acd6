"""One stream for many sessions."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ollm.daemon import event_log
from ollm.daemon.event_log import EventFeed, EventFrame, FeedReader
from ollm.domain.events import TextDelta
from tests.daemon.running import Daemon, Reply, daemon
from tests.servers.answers import Answer


def make_frame(session: str, text: str) -> EventFrame:
    return EventFrame(TextDelta(text=text, seq=1, session_id=session, timestamp="t"))


async def take(reader: FeedReader, count: int) -> list[str]:
    found: list[str] = []
    async for sent in reader:
        found.append(sent.decode())
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("steps", range(6))
async def test_a_stream_that_is_cancelled_as_an_event_comes_ends(steps: int) -> None:
    feed = EventFeed()
    reading = asyncio.create_task(take(feed.open_reader(f"{feed.run}-0", list), 99))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    feed.add(make_frame("a", "text"))
    for _ in range(steps):
        await asyncio.sleep(0)

    reading.cancel()

    done, _ = await asyncio.wait({reading}, timeout=30)
    assert done == {reading}
    assert reading.cancelled()


async def test_a_reader_gets_what_followed_the_event_it_knows() -> None:
    feed = EventFeed()
    for number in range(1, 6):
        feed.add(make_frame("a", f"text {number}"))
    reader = feed.open_reader(f"{feed.run}-3", list)
    feed.add(make_frame("b", "text 6"))

    found = await take(reader, 3)

    assert [one.split("\n")[0] for one in found] == [f"id: {feed.run}-{number}" for number in (4, 5, 6)]
    assert "text 6" in found[2]


@pytest.mark.parametrize("known", [None, "", "other-3", "RUN-99", "RUN-x", "RUN--1", "RUN-" + "9" * 30])
async def test_one_that_cannot_go_on_is_told_so_and_gets_the_running_turns(known: str | None) -> None:
    feed = EventFeed()
    for number in range(5):
        feed.add(make_frame("a", f"old {number}"))
    reader = feed.open_reader(known and known.replace("RUN", feed.run), lambda: [make_frame("a", "running")])

    first, second = await take(reader, 2)

    assert first.startswith(f"id: {feed.run}-5\nevent: reset\n")
    assert "running" in second


async def test_one_that_was_away_too_long_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_KEPT_EVENTS", 3)
    feed = EventFeed()
    for number in range(10):
        feed.add(make_frame("a", f"text {number}"))

    assert "reset" in (await take(feed.open_reader(f"{feed.run}-2", list), 1))[0]
    assert "text 9" in (await take(feed.open_reader(f"{feed.run}-7", list), 3))[2]


async def test_named_sessions_alone_are_sent() -> None:
    feed = EventFeed()
    reader = feed.open_reader(f"{feed.run}-0", list, frozenset({"b"}))
    feed.add(make_frame("a", "not this"))
    feed.add(make_frame("b", "this"))

    assert "this" in (await take(reader, 1))[0]
    assert feed.has_listener("b")
    assert not feed.has_listener("a")


async def test_a_silent_stream_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "PING_SECONDS", 0.01)
    feed = EventFeed()

    assert await take(feed.open_reader(f"{feed.run}-0", list), 2) == [": ping\n\n"] * 2


async def test_one_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_WAITING_EVENTS", 3)
    feed = EventFeed()
    reader = feed.open_reader(f"{feed.run}-0", list)
    for number in range(5):
        feed.add(make_frame("a", str(number)))

    assert feed.reader_count == 0
    assert len(await take(reader, 99)) == 3


async def test_closing_ends_every_stream() -> None:
    feed = EventFeed()
    reader = feed.open_reader(f"{feed.run}-0", list)
    assert feed.release_oldest()
    assert not feed.release_oldest()
    feed.close()

    assert await take(reader, 9) == []
    assert await take(feed.open_reader(f"{feed.run}-0", list), 9) == []


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
