"""What the daemon holds to: clients, open sessions, requests that make no sense, and answers while it reads."""

import asyncio
import resource
from pathlib import Path

import pytest

from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer
from tests.sizes import SOAK

SLOW = Answer(text="one two three four five six seven eight", pace=0.2)
UNLIMITED = resource.RLIM_INFINITY


def configure(directory: Path, text: str) -> None:
    (directory / ".ollm").mkdir()
    (directory / ".ollm" / "config.yaml").write_text(text)


@pytest.mark.soak
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


async def test_a_body_that_is_not_utf_8_or_never_comes_is_refused_at_once(tmp_path: Path) -> None:
    head = b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
    async with daemon(tmp_path) as found:
        reply = await found.ask("POST", "/init", raw=b'{"workspacePath":"\xff\xfe"}')
        assert (reply.status, reply.json["detail"]) == (400, "The request body is not UTF-8.")
        reader, writer = await asyncio.open_unix_connection(str(found.socket))
        writer.write(head + b"9" * 20 + b"\r\n\r\n{}")
        answer = await asyncio.wait_for(reader.readline(), 15)
        writer.close()
    assert b" 413" in answer
