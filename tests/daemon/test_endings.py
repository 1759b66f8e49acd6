"""Stops and kills of the daemon, and the daemon under load."""

import asyncio
import contextlib
import json
import signal
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.covers import covers
from tests.daemon.running import WRITE, Daemon, daemon, listing, texts
from tests.servers.answers import Answer
from tests.sizes import SOAK, size

SLOW = Answer(text="one two three four five six seven eight nine ten", pace=0.5)


@covers("W24", "W26", "W156")
async def test_after_a_kill_in_mid_answer_everything_said_is_there_and_goes_on(tmp_path: Path) -> None:
    async with daemon(tmp_path, [SLOW, WRITE, "Good."]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            async for event in events:
                if event["type"] == "text-delta" and "six" in event["text"]:
                    break
            shown = (await found.ask("GET", f"/sessions/{session}/transcript?limit=9")).json
            assert [one["role"] for one in shown["messages"]] == ["user"], "the events show the answer under way"
            await found.end(signal.SIGKILL)

        await found.start()
        (line,) = (await found.ask("GET", listing(found.workspace))).json
        assert (line["sessionId"], line["title"], line["status"]) == (session, "count", "closed")
        asked, cut = (await found.ask("GET", f"/sessions/{session}/history")).json
        assert asked["parts"][0]["text"] == "count"
        assert cut["interrupted"]
        assert cut["parts"][0]["text"].startswith("one two")
        await found.open(sessionId=session)
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "write"}) as events:
            await anext(event async for event in events if event["type"] == "confirmation-requested")
            await found.end(signal.SIGKILL)

        await found.start()
        await found.open(sessionId=session)
        assert texts(await found.say(session, "well?")) == "Good."
        document = (await found.ask("GET", f"/sessions/{session}")).json
    assert [message["role"] for message in document["messages"]] == [
        *("user", "assistant", "user", "assistant", "tool", "user", "assistant")
    ]
    assert [call["status"] for call in document["toolCalls"]] == ["interrupted"]
    assert not (found.workspace / "new.txt").exists()


async def test_a_turn_that_outlasts_the_limit_is_cut_off_and_kept(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("daemon:\n  drainSeconds: 1\n")
    async with daemon(tmp_path, [SLOW]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            await anext(event async for event in events if event["type"] == "text-delta")
            assert found.process
            found.process.send_signal(signal.SIGTERM)
            while (refused := await found.ask("GET", "/health")).status == 200:
                await asyncio.sleep(0.02)
            rest = [event async for event in events]
            assert await found.end() == 0

    assert refused.status == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert (rest[-1]["type"], rest[-1]["reason"]) == ("turn-finished", "cancelled")
    document = json.loads((found.home / "sessions" / f"{session}.json").read_text())
    assert document["messages"][-1]["interrupted"]
    assert not (found.home / "sessions" / f"{session}.journal").exists()


async def test_running_turns_may_end_when_the_daemon_is_stopped(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text="a slow but whole answer", pace=0.1)]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "slowly"}) as events:
            async for event in events:
                if event["type"] == "text-delta":
                    break
            assert await found.end(signal.SIGTERM) == 0

        document = json.loads((found.home / "sessions" / f"{session}.json").read_text())

    assert document["messages"][-1]["parts"][0]["text"] == "a slow but whole answer"
    assert not (found.home / "run" / "daemon.sock").exists()


CLIENTS, SESSIONS, MEGABYTES = size(20, 200), size(10, 500), size(3, 100)


def write_large_sessions(home: Path, megabytes: int) -> list[str]:
    """Write sessions of ten megabytes each, as the daemon itself would; returns their ids."""
    made = []
    (home / "sessions").mkdir(parents=True)
    text = "the quick brown fox jumps over the lazy dog " * 22
    for _ in range(max(megabytes // 10, 1)):
        session_id = str(uuid4())
        made.append(session_id)
        head = {
            "sessionId": session_id, "startTime": "2026-01-27T10:00:00.000Z",
            "lastActivity": "2026-01-27T10:00:00.000Z", "model": "m", "provider": "p",
            "metadata": {"schemaVersion": 1, "title": "large"},
        }  # fmt: skip
        count = min(megabytes, 10) * 900
        lines = [
            f'{{"role":"user","parts":[{{"type":"text","text":"{number} {text}"}}],'
            f'"timestamp":"2026-01-27T10:00:00.000Z","id":{number}}}'
            for number in range(1, count + 1)
        ]
        document = json.dumps(head, separators=(",", ":"))[:-1] + ',"messages":[\n' + ",\n".join(lines)
        (home / "sessions" / f"{session_id}.json").write_text(document + '\n],"toolCalls":[\n]}\n')
    return made


async def watch_health(found: Daemon, ended: asyncio.Event) -> list[float]:
    taken = []
    while not ended.is_set():
        begun = time.monotonic()
        assert (await found.ask("GET", "/health")).status == 200
        taken.append(time.monotonic() - begun)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), 0.02)
    return taken


async def open_sessions(found: Daemon, directory: Path) -> list[str]:
    opened = []
    for number in range(SESSIONS):
        place = directory / f"project{number}"
        place.mkdir()
        reply = await found.ask("POST", "/sessions", {"workspacePath": str(place)})
        assert reply.status == 201, reply.body
        opened.append(reply.json["sessionId"])
    return opened


async def test_health_is_answered_while_clients_listen_and_a_search_reads(tmp_path: Path) -> None:
    write_large_sessions(tmp_path / ".ollm", MEGABYTES)
    (tmp_path / ".ollm" / "config.yaml").write_text(
        f"daemon: {{maxClients: {CLIENTS}}}\nsessions: {{maxSessions: 0}}\n"
    )
    async with daemon(tmp_path) as found, contextlib.AsyncExitStack() as stack:
        opened = await open_sessions(found, tmp_path)
        for number in range(CLIENTS):
            path = f"/sessions/{opened[number % len(opened)]}/events"
            await stack.enter_async_context(found.stream("GET", path))
        ended = asyncio.Event()
        watching = asyncio.create_task(watch_health(found, ended))
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        reply = await found.ask("GET", "/search?q=lazy%20dog")
        searched = time.monotonic() - begun
        ended.set()
        taken = await watching
        health = (await found.ask("GET", "/health")).json
        assert reply.status == 200
        assert reply.json
        print(
            f"{CLIENTS} clients, {health['sessions']} sessions, search over {MEGABYTES} MB in {searched:.1f} s: "
            f"{len(taken)} health answers, slowest {max(taken):.3f} s, median {sorted(taken)[len(taken) // 2]:.3f} s"
        )
    assert max(taken) < max(searched / 2, 0.5), "nobody waits until the search is done"


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_health_is_answered_while_a_large_session_opens_talks_and_closes(tmp_path: Path) -> None:
    session = write_large_sessions(tmp_path / ".ollm", MEGABYTES)[0]
    async with daemon(tmp_path, ["Going on.", "Again."]) as found:
        assert (await found.ask("GET", "/sessions")).status == 200
        await found.open()  # what every session needs is imported
        ended = asyncio.Event()
        watching = asyncio.create_task(watch_health(found, ended))
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        await found.open(sessionId=session)
        opened = time.monotonic() - begun
        ended.set()
        taken = sorted(await watching)
        said = await found.say(session, "go on")
        closed = await found.ask("DELETE", f"/sessions/{session}")
    assert said[-1]["reason"] == "answered"
    assert closed.status == 204
    print(
        f"session of {MEGABYTES} MB opened in {opened:.2f} s: {len(taken)} health answers, slowest {taken[-1]:.3f} s, "
        f"median {taken[len(taken) // 2]:.3f} s"
    )
    assert taken[-1] < max(opened / 2, 0.5), "nobody waits until it is open"
