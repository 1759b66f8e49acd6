"""A real daemon process in a home of its own, against a scripted model server, spoken to over its socket."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ollm.system.http import iter_server_events, open_client
from tests.cli.forked import ForkedProcess, find_fork_server
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

JSON = {"content-type": "application/json"}
WRITE = Answer(calls=[("write_file", {"path": "new.txt", "content": "x"})])


def listing(workspace: Path) -> str:
    return f"/workspaces/{quote(str(workspace), safe='')}/sessions"


def texts(events: list[dict[str, object]]) -> str:
    return "".join(str(event["text"]) for event in events if event["type"] == "text-delta")


class Reply:
    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.status, self.body, self.headers = status, body, headers

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return whole


class Daemon:
    """The process, and requests to it. The user's home is `directory`."""

    def __init__(self, directory: Path, server: ScriptedServer) -> None:
        self.directory = directory
        self.home = directory / ".ollm"
        self.workspace = directory / "project"
        self.workspace.mkdir(exist_ok=True)
        self.server = server
        self.socket = self.home / "run" / "daemon.sock"
        self.process: ForkedProcess | None = None
        self.descriptors = 0  # how many it may have; 0: as many as we

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.directory),
            "OLLM_HOME": str(self.home),
            "OLLM_BASE_URL": self.server.base_url,
            "OLLM_PROVIDER": "openai",
            "OLLM_MODEL": "scripted",
        }

    async def start(self, *options: str) -> None:
        """As an ordinary user would: permissions hold for it too."""
        server = find_fork_server(self.environment)
        assert server
        line, limits = ("daemon", "run", *options), {"bounded": True, "descriptors": self.descriptors}
        with open(os.devnull) as nothing:  # noqa: PTH123 - a descriptor is all that is wanted
            self.process = server.fork(line, "/", self.environment, [nothing.fileno(), 1, 2], **limits)
        for _ in range(1200):
            if self.process.returncode is not None:
                raise AssertionError(f"the daemon ended with {self.process.returncode}")
            try:
                _, writer = await asyncio.open_unix_connection(str(self.socket))
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)
        raise AssertionError("the daemon does not listen")

    async def end(self, signal: int = 15) -> int:
        assert self.process
        if self.process.returncode is None:
            self.process.send_signal(signal)
        return await asyncio.wait_for(self.process.wait(), 300)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """One request over the Unix socket, or over TCP with `url`; `raw` is a body sent as it is."""
        content = more.get("raw", b"" if body is None else json.dumps(body).encode())
        headers = more.get("headers", JSON if content else {})
        if "url" in more:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(more["url"].rpartition(":")[2]))
        else:
            reader, writer = await asyncio.open_unix_connection(str(self.socket))
        host = more.get("url", "http://localhost").removeprefix("http://")
        head = {"host": host, "connection": "close", "content-length": str(len(content)), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content)
        found = b""
        with contextlib.suppress(ConnectionError):  # refused before it had read all of a large body
            await writer.drain()
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                found += piece
        writer.close()
        top, _, body = found.partition(b"\r\n\r\n")
        first, *fields = top.decode().split("\r\n")
        named = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        return Reply(int(first.split()[1]), unchunked(body) if "transfer-encoding" in named else body, named)

    async def open(self, **body: Any) -> str:
        reply = await self.ask("POST", "/sessions", {"workspacePath": str(self.workspace), **body})
        assert reply.status == 201, reply.body
        return str(reply.json["sessionId"])

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, last: int | None = None
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        headers = {**(JSON if body is not None else {}), **({"last-event-id": str(last)} if last is not None else {})}
        client = open_client("http://localhost", socket_path=str(self.socket), headers=headers)

        async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
            async for event in iter_server_events(chunks):
                yield json.loads(event)

        try:
            content = b"" if body is None else json.dumps(body).encode()
            async with client.stream(method, path, content) as response:
                assert response.status == 200
                yield events(response.iter_chunks())
        finally:
            await client.close()

    async def say(self, session_id: str, text: str) -> list[dict[str, Any]]:
        async with self.stream("POST", f"/sessions/{session_id}/messages", {"text": text}) as events:
            return [event async for event in events]


@asynccontextmanager
async def daemon(
    directory: Path, script: Sequence[Answer | str] = (), *options: str, descriptors: int = 0, **more: Any
) -> AsyncIterator[Daemon]:
    async with ScriptedServer(script, **more) as server:
        found = Daemon(directory, server)
        found.descriptors = descriptors
        await found.start(*options)
        try:
            yield found
        finally:
            await found.end()
