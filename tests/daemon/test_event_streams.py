"""Streams of events, and limits of connections."""

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import ServerState

from ollm.daemon import event_log, server
from ollm.daemon.event_log import EventFeed, EventFrame, EventLog, EventReader
from ollm.daemon.server import build_server_config
from ollm.domain.events import TextDelta
from tests.daemon.running import Daemon, Reply, daemon
from tests.servers.answers import Answer
from tests.sizes import SOAK


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

    assert first == f'id: {feed.run}-5\nevent: reset\ndata: {{"type":"reset"}}\n\n'
    assert "running" in second
    assert "text 5" in (await take(feed.follow(f"{feed.run}-2", ()), 3))[2]


async def test_named_sessions_alone_are_sent() -> None:
    feed = EventFeed()
    reader = feed.follow(f"{feed.run}-0", (), frozenset({"b"}))
    feed.add(1, make_frame("not this"))
    feed.add(2, make_frame("this", "b"))

    assert '"this"' in (await take(reader, 1))[0]


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


PIECES = {
    "silent": b"",
    "half a head": b"GET /health HTTP/1.1\r\nhost:",
    "half a body": b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 100\r\n\r\n{",
}

MANY = 300


def port_of(found: Daemon) -> int:
    return int(json.loads((found.home / "run" / "daemon.pid").read_text())["port"])


@contextlib.contextmanager
def crowd(found: Daemon, kind: str, piece: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(MANY):
            family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
            one = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            one.connect(str(found.socket) if kind == "unix" else ("127.0.0.1", port_of(found)))
            with contextlib.suppress(ConnectionError):  # it was the oldest already
                one.sendall(piece)
            opened.append(one)
        yield opened


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
async def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path, piece: bytes) -> None:
    async with daemon(tmp_path, ["hi there"], "--tcp") as found:
        session = await found.open()
        token = (found.home / "run" / "token").read_text()
        async with found.stream("GET", f"/sessions/{session}/events") as events:
            for kind in ("unix", "tcp"):
                with crowd(found, kind, piece):
                    near = await asyncio.wait_for(found.ask("GET", "/health"), 10)
                    url, headers = f"http://127.0.0.1:{port_of(found)}", {"authorization": f"Bearer {token}"}
                    far = await asyncio.wait_for(found.ask("GET", "/health", url=url, headers=headers), 10)
                    assert (near.status, far.status) == (200, 200)
            said = await found.say(session, "hello")
            heard = [event async for event in until_finished(events)]
    assert [event["seq"] for event in heard] == [event["seq"] for event in said]


async def until_finished(events):
    async for event in events:
        yield event
        if event["type"] == "turn-finished":
            return


async def test_as_many_clients_listen_as_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("daemon:\n  maxClients: 2\n")
    async with daemon(tmp_path, [Answer(text="a b c d e f", pace=0.3)]) as found, contextlib.AsyncExitStack() as stack:
        session = await found.open()
        await stack.enter_async_context(found.stream("GET", f"/sessions/{session}/events"))
        await stack.enter_async_context(found.stream("POST", f"/sessions/{session}/messages", {"text": "x"}))

        reply = await found.ask("GET", f"/sessions/{session}/events")
        assert reply.status == 503, "in a session where a turn runs nobody is sent away"
        assert "maxClients" in reply.json["action"]
        assert (await found.ask("POST", f"/sessions/{session}/cancel")).json == {"accepted": True}


SLOW = Answer(text="one two three four five six seven eight", pace=0.2)

UNLIMITED = resource.RLIM_INFINITY


def configure(directory: Path, text: str) -> None:
    (directory / ".ollm").mkdir()
    (directory / ".ollm" / "config.yaml").write_text(text)


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_no_more_clients_than_the_settings_say_even_when_they_come_at_once(tmp_path: Path) -> None:
    configure(tmp_path, "daemon:\n  maxClients: 5\n")
    async with daemon(tmp_path, [SLOW]) as found:
        session = await found.open()
        listening = [asyncio.create_task(read_status(found, session)) for _ in range(20)]
        ended, open_still = await asyncio.wait(listening, timeout=3)
        assert len(open_still) == 5, "the others made room, the oldest first"
        said = await found.say(session, "count")
        assert said[-1]["reason"] == "answered", "who sends takes the place of one that only waits"
        for task in open_still:
            task.cancel()
        await asyncio.gather(*open_still, return_exceptions=True)
    assert all(task.result() == 200 for task in ended)


async def read_status(found: Daemon, session: str) -> int:
    reply = await found.ask("GET", f"/sessions/{session}/events")
    return reply.status


async def test_what_cannot_be_saved_keeps_its_session_open_and_is_said(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["One.", "Two.", "Three."]) as found:
        assert found.process
        session = await found.open()
        await found.say(session, "first")
        resource.prlimit(found.process.pid, resource.RLIMIT_FSIZE, (1, UNLIMITED))
        await found.say(session, "second")
        refused = await found.ask("DELETE", f"/sessions/{session}")
        resource.prlimit(found.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        assert refused.status == 507
        assert "2 messages" in refused.json["detail"]
        assert (await found.ask("DELETE", f"/sessions/{session}")).status == 204
        history = (await found.ask("GET", f"/sessions/{session}/history")).json
    assert [message["parts"][0]["text"] for message in history] == ["first", "One.", "second", "Two."]


HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"


async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    del scope
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.5)  # longer than a client may take to ask
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    ("pieces", "answered"),
    [
        ([], False),
        ([b"GET / HT"], False),
        ([HEAD], False),
        ([HEAD, b"a: b\r\n", b"c: d\r\n", b"e: f\r\n", b"g: h\r\n"], False),
        ([HEAD + b"content-length: 9\r\n\r\n", b"{"], False),
        ([HEAD + b"content-length: 2\r\n\r\n", b"{}"], True),
    ],
)
async def test_a_request_arrives_in_time_or_its_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch, pieces: list[bytes], answered: bool
) -> None:
    monkeypatch.setattr(server, "RECEIVE_SECONDS", 0.3)
    config = build_server_config(answer)
    config.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: server.DaemonHttpProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    found = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.1)
        found = await asyncio.wait_for(reader.read(100), 10)
    except ConnectionError:
        pass
    finally:
        writer.close()
        listening.close()

    assert found.startswith(b"HTTP/1.1 204") is answered
