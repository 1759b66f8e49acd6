"""What the daemon holds to: clients, open sessions, requests that make no sense, and answers while it reads."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from tests.cli.command import SCRIPT
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer

SLOW = Answer(text="one two three four five six seven eight", pace=0.2)
UNLIMITED = resource.RLIM_INFINITY


def configure(directory: Path, text: str) -> None:
    (directory / ".ollm").mkdir()
    (directory / ".ollm" / "config.yaml").write_text(text)


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


async def test_a_session_that_nobody_uses_is_closed_and_can_be_opened_again(tmp_path: Path) -> None:
    configure(tmp_path, "daemon:\n  idleMinutes: 0.02\n")
    async with daemon(tmp_path, ["hi", "again"]) as found:
        session = await found.open()
        await found.say(session, "hello")
        for _ in range(100):
            if (await found.ask("GET", "/health")).json["sessions"] == 0:
                break
            await asyncio.sleep(0.1)
        assert (await found.ask("GET", f"/sessions/{session}/status")).status == 404
        assert not list((found.home / "sessions").glob("*.lock"))
        assert await found.open(sessionId=session) == session
        said = await found.say(session, "still there?")
    assert said[-1]["reason"] == "answered"


async def test_many_sessions_do_not_run_out_of_descriptors(tmp_path: Path) -> None:
    async with daemon(tmp_path, descriptors=440) as found:
        for number in range(20):
            place = tmp_path / f"project{number}"
            place.mkdir()
            reply = await found.ask("POST", "/sessions", {"workspacePath": str(place)})
            assert reply.status == 201, (number, reply.body)
        assert (await found.ask("GET", "/health")).json["sessions"] == (440 - 384) // 6


async def test_requests_that_make_no_sense_are_told_so(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        session = await found.open()
        reader, writer = await asyncio.open_unix_connection(str(found.socket))
        smuggled = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
        writer.write(
            b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled.encode()
        )
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1, "what follows is not answered"

        headers = {"last-event-id": "9" * 5000}
        with contextlib.suppress(asyncio.TimeoutError):
            reply = await asyncio.wait_for(found.ask("GET", f"/sessions/{session}/events", headers=headers), 0.5)
            assert reply.status == 200
        for path in ("/" + "a" * 300, "/" + "a/" * 3000 + "b", "/" + "ü" * 200):
            assert (await found.ask("POST", "/init", {"workspacePath": path})).status in (400, 422)
            reply = await found.ask("GET", f"/workspaces/{quote(path, safe='')}/sessions")
            assert reply.status == 400, reply.body
        for path in ("/sessions/" + "a" * 300, "/sessions/%00", "/snapshots/" + "b" * 5000 + "/restore"):
            assert (await found.ask("GET" if "snap" not in path else "POST", path)).status in (404, 422, 400)


async def test_all_sessions_are_listed_page_by_page_and_all_workspaces(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"] * 5) as found:
        made = []
        for number in range(5):
            place = tmp_path / f"project{number % 2}"
            place.mkdir(exist_ok=True)
            reply = await found.ask("POST", "/sessions", {"workspacePath": str(place)})
            made.append(reply.json["sessionId"])
            await found.say(made[-1], f"hello {number}")
        first = await found.ask("GET", "/sessions?limit=2")
        rest = await found.ask("GET", "/sessions?limit=10&offset=2")
        places = (await found.ask("GET", "/workspaces")).json
    assert first.headers["x-total-count"] == "5"
    assert "offset=2" in first.headers["link"]
    assert "link" not in rest.headers
    assert [line["sessionId"] for line in first.json + rest.json] == made[::-1]
    assert [(line["workspacePath"], line["sessions"]) for line in places] == [
        (str(tmp_path / "project0"), 3), (str(tmp_path / "project1"), 2),
    ]  # fmt: skip


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


def test_a_daemon_that_was_killed_and_not_reaped_is_dead(tmp_path: Path) -> None:
    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home")}
    killed = subprocess.Popen([sys.executable, "-m", "ollm", "daemon", "run"], env=environment, cwd="/")
    try:
        while not (tmp_path / "home" / "run" / "daemon.pid").exists():
            assert killed.poll() is None
        os.kill(killed.pid, signal.SIGKILL)
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
        status = subprocess.run(
            [SCRIPT, "daemon", "status", "--json"], env=environment, capture_output=True, check=True
        )
        assert json.loads(status.stdout)["running"] is False
        started = subprocess.run([SCRIPT, "daemon", "start"], env=environment, capture_output=True, check=False)
        assert started.returncode == 0, started.stderr
    finally:
        killed.wait()
        subprocess.run([SCRIPT, "daemon", "stop"], env=environment, capture_output=True, check=False)
