"""A real HTTP server on loopback that answers as it is told, byte for byte if need be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Writer = asyncio.StreamWriter
Handler = Callable[["Request", Writer], Awaitable[None]]


class Request:
    """What was asked: the first line, the headers, the body."""

    def __init__(self, line: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, _ = line.split(" ", 2)
        self.headers = headers
        self.body = body


def reply(body: bytes | str, *, status: str = "200 OK", **headers: str) -> Handler:
    """A plain answer; header names are given with underscores."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def handle(request: Request, writer: Writer) -> None:
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + data)

    return handle


class Server:
    """Handlers by path, and the requests that came."""

    def __init__(self) -> None:
        self.routes: dict[str, Handler] = {}
        self.requests: list[Request] = []
        self.port = 0

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.place}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = Request(head[0], headers, body)
            self.requests.append(request)
            path = request.path.partition("?")[0]
            await self.routes.get(path, reply("not here", status="404 Not Found"))(request, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
