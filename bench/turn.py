"""One turn of fifty calls: from the end of one answer to the next request, with every record on disk.

The model reads another file each time, through dispatch and a policy that allows reading. The baseline is the least
there can be: the four durable lines that a step is recorded with.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.row import Row

CALLS = 50
CONFIG = """\
provider: {{type: openai, baseUrl: {url}, model: scripted, contextWindow: 131072}}
loopDetection: {{maxTurns: 200}}
policy:
  rules:
    - {{tool: read_file, action: allow}}
"""


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        server = asyncio.run(_turn(Path(directory)))
        floor = _floor(Path(directory))
    gaps = server.gaps
    assert len(gaps) == CALLS, gaps
    tenth = CALLS // 5
    yield Row("answer to next request, median", statistics.median(gaps), floor, 4, "ms", of="figure")
    first, last = statistics.median(gaps[:tenth]), statistics.median(gaps[-tenth:])
    yield Row("the last ten against the first ten", last, first, 1.5, "ms")
    yield Row("connections of the turn", server.connections, None, 2, "", of="figure")


class Scripted:
    """Asks for one more file with each answer; notes the time between its answers and the next requests."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        self.connections = 0
        self._asked = 0
        self._answered: float | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                began = time.perf_counter()
                await reader.readexactly(_length(head))
                writer.write(self._answer(head.split(b" ", 2)[1].decode(), began))
                await writer.drain()
                if self._asked:
                    self._answered = time.perf_counter()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, path: str, began: float) -> bytes:
        if not path.endswith("/chat/completions"):
            known = {"object": "list", "data": [{"id": "scripted", "max_model_len": 131072}]}
            return _response(200 if path.endswith("/models") else 404, json.dumps(known).encode(), "application/json")
        if self._answered is not None:
            self.gaps.append((began - self._answered) * 1000)
        self._asked += 1
        return _response(200, _chunks(self._asked), "text/event-stream")


def _chunks(number: int) -> bytes:
    if number > CALLS:
        delta: dict[str, object] = {"content": "Done."}
    else:
        function = {"name": "read_file", "arguments": json.dumps({"path": f"file{number}.txt"})}
        delta = {"tool_calls": [{"index": 0, "id": f"x{number}", "type": "function", "function": function}]}
    finish = "stop" if number > CALLS else "tool_calls"
    usage = {"prompt_tokens": 1000 + 60 * number, "completion_tokens": 10}
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _response(status: int, body: bytes, kind: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)


async def _turn(directory: Path) -> Scripted:
    home, workspace = directory / "home", directory / "work"
    home.mkdir()
    workspace.mkdir()
    for number in range(1, CALLS + 1):
        (workspace / f"file{number}.txt").write_text(f"This is file {number}.\nIt has two lines.\n", encoding="utf-8")
    scripted = Scripted()
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    try:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        (home / "config.yaml").write_text(CONFIG.format(url=url), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "OLLM_HOME": str(home)}
        command = [str(Path(sys.executable).parent / "ollm"), "-p", "Read all the files."]
        null = subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=workspace, stdin=null, stdout=null, stderr=null
        )
        assert await process.wait() == 0
    finally:
        server.close()
    return scripted


def _floor(directory: Path) -> float:
    """Two durable lines, as one call makes at the least, in milliseconds."""
    path = directory / "lines"
    taken = []
    with path.open("ab", buffering=0) as file:
        for _ in range(CALLS):
            began = time.perf_counter()
            for _ in range(4):
                file.write(b"x" * 200 + b"\n")
                os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)
