"""Stops and kills of the daemon."""

import asyncio
import json
import signal
import time
from pathlib import Path

from tests.covers import covers
from tests.daemon.running import WRITE, daemon, listing, texts
from tests.servers.answers import Answer

SLOW = Answer(text="one two three four five six seven eight nine ten", pace=0.5)


@covers("W24", "W26", "W156")
async def test_after_a_kill_in_mid_answer_everything_said_is_there_and_goes_on(tmp_path: Path) -> None:
    async with daemon(tmp_path, [SLOW, WRITE, "Good."]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            async for event in events:
                if event["type"] == "text-delta" and "six" in event["text"]:
                    break
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
            began = time.monotonic()
            while (refused := await found.ask("GET", "/health")).status == 200:
                await asyncio.sleep(0.02)
            rest = [event async for event in events]
            assert await found.end() == 0

    assert refused.status == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert time.monotonic() - began < 5
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
