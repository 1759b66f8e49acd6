"""The common part of the stand-in servers: sockets, HTTP/1.1 with kept connections, the script, the record."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import h11

from tests.servers.answers import Answer, Request

Script = Sequence[Answer | str] | Callable[[Request], Answer]


class Server(ABC):
    """`async with Server([...]) as server:`; when the script is used up it says so as text."""

    content_type = "text/event-stream"

    def __init__(
        self,
        script: Script = (),
        *,
        model: str = "scripted",
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.script = script if callable(script) else list(script)
        self.model = model
        self.requests: list[Request] = []
        self.connections = 0
        self.open_chats = self.most_open_chats = 0
        self.left = asyncio.Event()  # a client went away before its answer was over
        self._host, self._port, self._tls = host, port, tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, self._host, self._port, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def chats(self) -> list[Any]:
        """The bodies of the chat requests, in order: what the model was sent."""
        return [request.body for request in self.requests if request.path in self.chat_paths]

    chat_paths: tuple[str, ...] = ()

    def page(self, request: Request) -> tuple[int, Any]:
        """Any page but chat: status and JSON."""
        return 404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}

    @abstractmethod
    def events(self, answer: Answer, request: Request) -> list[bytes]:
        """The pieces of a streamed answer, its end included as the last ones."""

    @abstractmethod
    def failure(self, message: str) -> bytes:
        """An error in the middle of a stream."""

    ending = 1  # how many events at the end of `events` are not text

    def answer(self, request: Request) -> Answer:
        if callable(self.script):
            return self.script(request)
        found = self.script.pop(0) if self.script else Answer(text="The script is over.")
        return Answer(text=found) if isinstance(found, str) else found

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            await self._serve(reader, writer, number)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        while (request := await self._read(protocol, reader, number)) is not None:
            self.requests.append(request)
            if request.path not in self.chat_paths:
                status, body = self.page(request)
                await self._send(writer, status, body)
            elif not await self._chat(reader, writer, self.answer(request), request):
                return
            protocol.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            protocol.send(h11.EndOfMessage())
            protocol.start_next_cycle()

    async def _read(self, protocol: h11.Connection, reader: asyncio.StreamReader, number: int) -> Request | None:
        head, body = None, b""
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                protocol.receive_data(await reader.read(1 << 16))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                headers = {name.decode(): value.decode() for name, value in head.headers}
                decoded = json.loads(body) if body else None
                return Request(head.method.decode(), head.target.decode(), headers, decoded, number)
            else:
                return None

    async def _send(self, writer: asyncio.StreamWriter, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()

    async def _chat(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, request: Request
    ) -> bool:
        """Whether the connection can go on."""
        watch = asyncio.ensure_future(reader.read(1))
        work = asyncio.ensure_future(self._answer(writer, answer, request))
        self.open_chats += 1
        self.most_open_chats = max(self.open_chats, self.most_open_chats)
        try:
            await asyncio.wait({watch, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.left.set()
                return False
            return work.result()
        finally:
            self.open_chats -= 1
            work.cancel()
            if not watch.done():
                watch.cancel()
            await asyncio.gather(watch, work, return_exceptions=True)

    async def _answer(self, writer: asyncio.StreamWriter, answer: Answer, request: Request) -> bool:
        while self.most_open_chats < answer.together:
            await asyncio.sleep(0.01)
        await asyncio.sleep(answer.delay)
        if answer.raw is not None:
            writer.write(answer.raw)
            await writer.drain()
            return False
        if answer.status != 200:
            await self._send(writer, answer.status, answer.body)
            return True
        closing = "Connection: close\r\n" if answer.close else ""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {self.content_type}\r\nTransfer-Encoding: chunked\r\n{closing}\r\n"
        writer.write(head.encode())
        async for event in self._performed(writer, answer, request):
            if event is None:
                return False
            for data in _cut(event, answer.piece_bytes):
                writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                await writer.drain()
                if answer.piece_bytes:
                    await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not answer.close

    async def _performed(
        self, writer: asyncio.StreamWriter, answer: Answer, request: Request
    ) -> AsyncIterator[bytes | None]:
        """The events with what is to go wrong among them; None when the connection is not to be used again."""
        for number, event in enumerate(self.events(answer, request)):
            if number == answer.stall_after:
                await writer.drain()
                await asyncio.sleep(3600)
            if number == answer.reset_after:
                await writer.drain()
                _reset(writer)
                yield None
                return
            if number == answer.end_after:
                return
            if number == answer.error_after:
                yield self.failure(answer.error)
                return
            if number == answer.garbage_after:
                yield b"data: {not json\n\n" if self.content_type == "text/event-stream" else b"{not json\n"
            if number and answer.pace:
                await asyncio.sleep(answer.pace)
            yield event


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def words(text: str) -> list[str]:
    """Text as a model streams it: a word with the blank before it at a time."""
    pieces: list[str] = []
    for word in text.split(" "):
        pieces.append(word if not pieces else f" {word}")
    return pieces if text else []


def main(kind: type[Server]) -> None:
    """Run as a process: print the URL, then serve until stdin ends or the process is ended."""
    import argparse
    import sys
    from pathlib import Path

    import msgspec

    parser = argparse.ArgumentParser(description="A model server that says what a script tells it.")
    parser.add_argument("--script", type=Path, help="JSON list of answers (see tests/servers/answers.py) or of texts")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--requests", type=Path, help="append every request here, one JSON object a line")
    options = parser.parse_args()
    script = msgspec.json.decode(options.script.read_bytes(), type=list[Answer | str]) if options.script else []

    class Kept(list[Request]):
        def append(self, request: Request) -> None:
            super().append(request)
            if options.requests:
                with options.requests.open("ab") as file:
                    file.write(msgspec.json.encode(request) + b"\n")

    async def serve() -> None:
        server = kind(script, model=options.model, port=options.port)
        server.requests = Kept()
        async with server:
            print(server.base_url, flush=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        sys.exit(130)
