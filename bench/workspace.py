"""Coming back to a workspace: the picker's list, a long session taken up again, and the daemon."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from bench.compare import read_cpu_seconds
from bench.row import Row, pair, program
from bench.servers import InstantServer
from bench.terminal import Terminal
from ollm.daemon.bodies import Health, OpenReply
from ollm.daemon.client import DaemonClient
from ollm.store.session_files.document import iter_document

AT = "2026-01-01T00:00:00.000Z"
TEXT = "A sentence of the usual length that somebody may have said in a conversation. " * 4
OLLM = str(Path(sys.executable).parent / "ollm")
CONFIG = "provider: {{type: openai, baseUrl: {url}, model: instant, contextWindow: {window}}}\n"
CLIENTS = 50
WINDOW = 32_768  # with room for what is resumed
LIST = (
    "import sys; from pathlib import Path\n"
    "from ollm.app.process import ProcessScope; from ollm.app.workspace import WorkspaceScope\n"
    "place = Path(sys.argv[1]); found = WorkspaceScope(ProcessScope(workspace=place), place).context.list_sessions()\n"
    "assert len(found) == int(sys.argv[2])"
)


def rows() -> Iterable[Row]:
    for measure in (picker, resuming, daemon):
        with tempfile.TemporaryDirectory(prefix="ollm-bench-") as directory:
            root = Path(directory)
            (root / "home" / "sessions").mkdir(parents=True)
            (root / "work").mkdir()
            yield from measure(root)


def picker(root: Path) -> Iterator[Row]:
    for _ in range(1000):
        written(root, 4)
    ours = program([sys.executable, "-c", LIST, str(root / "work"), "1000"], environment(root))
    bare = program([sys.executable, "-I", "-c", "import sqlite3"])
    taken, baseline = pair(ours, bare, times=9)
    yield Row("the picker's list of 1,000 sessions", taken * 1000, baseline * 1000, 13, "ms")
    shown, baseline = pair(lambda: _on_screen(root), bare, times=5)
    yield Row("the picker on screen with 1,000 sessions", shown * 1000, baseline * 1000, None, "ms")


def _on_screen(root: Path) -> None:
    with Terminal([OLLM, "chat"], {**environment(root), "TERM": "xterm-256color"}, root / "work") as terminal:
        terminal.wait_for("Resume a chat")


def resuming(root: Path) -> Iterator[Row]:
    """Both are taken up once before, so that the workspace knows them."""
    short, long = written(root, 100), written(root, 10_000)
    taken: dict[str, list[tuple[float, float]]] = {short: [], long: []}
    for attempt in range(10):
        for session_id, times in taken.items():
            figures = _first_request(root, session_id)
            if attempt:
                times.append(figures)
    for place, name in enumerate(("", ", processor time")):
        ours, baseline = (statistics.median(found[place] for found in taken[one]) * 1000 for one in (long, short))
        yield Row(f"resume of 10,000 messages, against 100{name}", ours, baseline, 1.2, "ms")
    folding = [[_first_request(root, one, window=4096)[0] for one in (long, short)] for _ in range(5)]
    ours, baseline = (statistics.median(both) * 1000 for both in zip(*folding, strict=True))
    yield Row("the same, folded and kept as a snapshot first", ours, baseline, None, "ms")


def _first_request(root: Path, session_id: str, window: int = WINDOW) -> tuple[float, float]:
    """Seconds from the start of the program to its first request, and those it was on a processor."""
    with InstantServer() as server:
        configure(root, server.base_url, window)
        began = time.perf_counter()
        command, null = [OLLM, "-p", "hi", "--session", session_id], subprocess.DEVNULL
        process = subprocess.Popen(
            command, env=environment(root), cwd=root / "work", stdin=null, stdout=null, stderr=null
        )
        server.read_cpu = lambda: read_cpu_seconds(process.pid)
        assert process.wait() == 0
        return server.moments[0].asked - began, server.moments[0].asked_cpu


def daemon(root: Path) -> Iterator[Row]:
    with InstantServer() as server:
        configure(root, server.base_url)
        yield from asyncio.run(_daemon(root))


async def _daemon(root: Path) -> list[Row]:
    async with _running(root) as process:
        client = DaemonClient(root / "home" / "run" / "daemon.sock")
        await client.call("GET", "/health", type=Health)  # it has started for good
        idle = await _idle(process)
        body = {"workspacePath": str(root / "work")}
        opened = await client.call("POST", "/sessions", body, type=OpenReply)
        first = [await _first_event(client, opened.session_id) for _ in range(9)]
        crowd = await _spread(root, opened.session_id)
        await client.close()
    return [
        Row("a message to its first event", statistics.median(first) * 1000, None, 20, "ms", of="figure"),
        Row(f"the last of {CLIENTS} clients has an event after the first", crowd * 1000, None, 25, "ms", of="figure"),
        *idle,
    ]


async def _first_event(client: DaemonClient, session_id: str) -> float:
    began = time.perf_counter()
    seconds = 0.0
    async with client.stream("POST", f"/sessions/{session_id}/messages", {"text": "hi"}) as events:
        async for _ in events:
            seconds = seconds or time.perf_counter() - began
    return seconds


async def _spread(root: Path, session_id: str) -> float:
    """How long after the first client the last one has an event, the median over the events of a turn."""
    seen: dict[bytes, list[float]] = {}
    place, loop = str(root / "home" / "run" / "daemon.sock"), asyncio.get_running_loop()
    ears = [await loop.create_unix_connection(lambda: Ear(session_id, seen), place) for _ in range(CLIENTS)]
    client = DaemonClient(root / "home" / "run" / "daemon.sock")
    await asyncio.sleep(1)
    seen.clear()
    await _first_event(client, session_id)
    await asyncio.sleep(1)
    for transport, _ in ears:
        transport.close()
    await client.close()
    assert {len(times) for times in seen.values()} == {CLIENTS}
    return statistics.median(max(times) - min(times) for times in seen.values())


class Ear(asyncio.Protocol):
    """A client that notes when the number of each event comes, and does no more: fifty of them share a processor."""

    def __init__(self, session_id: str, seen: dict[bytes, list[float]]) -> None:
        self._session_id = session_id
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(f"GET /sessions/{self._session_id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        for number in re.findall(rb"(?:^|\n)id: (\d+)\n", data):
            self._seen.setdefault(number, []).append(now)


async def _idle(process: psutil.Process) -> list[Row]:
    await asyncio.sleep(2)
    before = process.cpu_times()
    await asyncio.sleep(5)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return [
        Row("the idle daemon's memory", process.memory_info().rss / 1e6, None, 100, "MB", of="figure"),
        Row("its processor time in 5 s", used * 1000, None, 10, "ms", of="figure"),
    ]


@asynccontextmanager
async def _running(root: Path):
    null = subprocess.DEVNULL
    process = subprocess.Popen([OLLM, "daemon", "run"], env=environment(root), stdin=null, stdout=null, stderr=null)
    try:
        while not await _listens(root / "home" / "run" / "daemon.sock"):
            assert process.poll() is None
            await asyncio.sleep(0.05)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


async def _listens(place: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(place))
    except OSError:
        return False
    writer.close()
    return True


def configure(root: Path, url: str, window: int = WINDOW) -> None:
    (root / "home" / "config.yaml").write_text(CONFIG.format(url=url, window=window), encoding="utf-8")


def environment(root: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(root), "OLLM_HOME": str(root / "home")}


def written(root: Path, count: int) -> str:
    """A closed session of the workspace, put on disk in one go."""
    session_id = str(uuid.uuid4())
    head = {"sessionId": session_id, "startTime": AT, "lastActivity": AT, "model": "instant", "provider": "openai"}
    metadata = {"tokenCount": 1, "schemaVersion": 1, "title": "A conversation", "workspace": str(root / "work")}
    lines = (
        json.dumps(
            {
                "role": "assistant" if number % 2 == 0 else "user",
                "parts": [{"type": "text", "text": f"{number}. {TEXT}"}],
                "timestamp": AT,
                "id": number,
            },
            separators=(",", ":"),
        ).encode()
        for number in range(1, count + 1)
    )
    with (root / "home" / "sessions" / f"{session_id}.json").open("wb") as file:
        file.writelines(iter_document({**head, "metadata": metadata}, lines, ()))
    return session_id
