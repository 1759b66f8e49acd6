"""JSON messages as lines on two descriptors. Invalid input gets an error reply, and output keeps its order.

Reading and writing each have a thread, so that pipes, sockets and plain files all work and a slow editor blocks
nothing. `ended` is set as soon as the input ends. `receive` returns None once every request has been answered, or
once the output is no longer read.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import msgspec

from ollm import __version__
from ollm.domain.errors import OllmError
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.extensions.mcp.settings import make_server_name, read_server
from ollm.providers.base import decode_json

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_WAITING_BYTES = 1024 * 1024  # Senders wait while more bytes than this are not written.
MAX_WAITING_MESSAGES = 64
CLOSED_CHECK_SECONDS = 0.5  # Time between checks of the output after the input has ended.
NOTIFICATIONS = ("session/cancel",)  # Some editors send it as a request.
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class ClientGoneError(OllmError):
    """The editor has disconnected and cannot answer."""


class ClientRefusedError(OllmError):
    """The editor answered with an error."""


class ClientAbilities(Data, frozen=True):
    """Abilities an editor offers. `shows_terminals`: it draws the output of our commands as a terminal."""

    reads_files: bool = False
    writes_files: bool = False
    shows_terminals: bool = False


class BadMessage(Exception):  # noqa: N818 - an answer to the editor, not a fault of the program
    """An invalid message line. `code` is a JSON-RPC error code."""

    def __init__(self, code: int, message: str, request_id: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id


class StdioTransport:
    """One connection. `ended` is set at the end of input, when requests to the editor get no more answers."""

    def __init__(self, source: int, target: int) -> None:
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._source, self._target = source, target
        self._incoming: asyncio.Queue[bytes | BadMessage | None] = asyncio.Queue(MAX_WAITING_MESSAGES)
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._waiting_bytes = 0
        self._drained = asyncio.Event()
        self._broken = False
        self._unanswered: set[Any] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer = threading.Thread(target=self._write_all, name="acp writer", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read_all, name="acp reader", daemon=True).start()

    async def send(self, message: dict[str, Any]) -> None:
        """Queue a message, and wait while too much output is pending."""
        if self._broken:
            raise ConnectionError("The editor does not read any more.")
        if "method" not in message:
            self._unanswered.discard(message.get("id"))
        line = encode_message(message)
        self._waiting_bytes += len(line)
        self._outgoing.put(line)
        if not self._unanswered:
            self._idle.set()
        while self._waiting_bytes > MAX_WAITING_BYTES and not self._broken and not self.ended.is_set():
            self._drained.clear()
            await self._drained.wait()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None on every call after the end. Invalid messages are answered here."""
        while not self.ended.is_set() and (line := await self._incoming.get()) is not None:
            try:
                message = parse_message(line)
            except BadMessage as error:
                await self._refuse(error)
                continue
            if message.get("method") in NOTIFICATIONS and "id" in message:
                await self.send({"jsonrpc": "2.0", "id": message.pop("id"), "result": None})
            if "method" in message and "id" in message:
                self._unanswered.add(message["id"])
                self._idle.clear()
            return message
        self.ended.set()
        self._drained.set()  # Waiting senders go on, because nobody may be left to make room.
        await self._wait_for_answers()
        return None

    async def close(self) -> None:
        """Write pending messages, then close."""
        self._outgoing.put(None)
        await asyncio.to_thread(self._writer.join, CLOSED_CHECK_SECONDS)

    async def _refuse(self, error: BadMessage) -> None:
        answer = {"code": error.code, "message": str(error)}
        if not self._broken:
            await self.send({"jsonrpc": "2.0", "id": error.request_id, "error": answer})

    async def _wait_for_answers(self) -> None:
        while not self._idle.is_set() and not self._broken and not is_closed(self._target):
            try:
                async with asyncio.timeout(CLOSED_CHECK_SECONDS):  # In Python 3.11 `wait_for` may lose a cancellation.
                    await self._idle.wait()
            except TimeoutError:
                continue

    def _read_all(self) -> None:
        def put(item: bytes | BadMessage | None) -> None:
            asyncio.run_coroutine_threadsafe(self._incoming.put(item), self._loop).result()

        try:
            for line in iterate_lines(self._source):
                put(line)
            put(None)
        except RuntimeError:
            return  # The loop is closed, so nobody reads it.

    def _write_all(self) -> None:
        while (line := self._outgoing.get()) is not None:
            if not self._broken:
                self._write_line(line)
            try:
                self._loop.call_soon_threadsafe(self._count_written, len(line))
            except RuntimeError:
                return  # The loop is closed.

    def _write_line(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._target, rest) :]
        except OSError:
            self._broken = True

    def _count_written(self, count: int) -> None:
        self._waiting_bytes -= count
        if self._broken or self._waiting_bytes <= MAX_WAITING_BYTES:
            self._drained.set()


def iterate_lines(source: int) -> Iterator[bytes | BadMessage]:
    """Yield the non-empty lines of a descriptor, and a BadMessage for each line that is too long."""
    with suppress(OSError), open(source, "rb", closefd=False) as stream:
        while line := stream.readline(MAX_MESSAGE_BYTES + 1):
            if len(line) <= MAX_MESSAGE_BYTES or line.endswith(b"\n"):
                yield from filter(bytes.strip, (line.removesuffix(b"\n"),))
                continue
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_MESSAGE_BYTES)
            yield BadMessage(INVALID_REQUEST, f"A message is longer than {MAX_MESSAGE_BYTES:,} bytes.")


def parse_message(line: bytes | BadMessage) -> JsonObject:
    """Parse a line as a JSON-RPC message. Raises BadMessage."""
    if isinstance(line, BadMessage):
        raise line
    try:
        message = decode_json(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadMessage(PARSE_ERROR, f"Not JSON: {error}") from error
    if not isinstance(message, dict):
        raise BadMessage(INVALID_REQUEST, "A message is a JSON object; batches are not supported.")
    request_id = message.get("id")
    if isinstance(request_id, dict | list | bool):
        raise BadMessage(INVALID_REQUEST, "id must be a string or a number.")
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessage(INVALID_REQUEST, "method must be a string.", request_id)
        message["params"] = {} if message.get("params") is None else message["params"]
    elif request_id is None or not isinstance(message.get("error", {}), dict):
        raise BadMessage(INVALID_REQUEST, "Neither a request nor an answer to one.", request_id)
    return message


def encode_message(message: JsonObject) -> bytes:
    return msgspec.json.encode(message, enc_hook=str) + b"\n"


def is_closed(target: int) -> bool:
    """Return True if the other end of a pipe or socket is closed. Always False for a file."""
    poll = select.poll()
    poll.register(target, 0)
    return any(flags & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, flags in poll.poll(0))


PROTOCOL_VERSION = 1
AGENT_CAPABILITIES: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
}


def build_introduction(version: int) -> JsonObject:
    """Build the agent's introduction to an editor that uses protocol `version`."""
    return {
        "protocolVersion": min(max(version, 1), PROTOCOL_VERSION),
        "agentCapabilities": AGENT_CAPABILITIES,
        "agentInfo": {"name": "ollm", "title": "ollm", "version": __version__},
        "authMethods": [],
    }


def read_abilities(capabilities: JsonObject) -> ClientAbilities:
    """Read the editor's abilities; none if it does not send any."""
    files, more = capabilities.get("fs"), capabilities.get("_meta")
    files = files if isinstance(files, dict) else {}
    return ClientAbilities(
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        shows_terminals=isinstance(more, dict) and more.get("terminal_output") is True,
    )


class NamedValue(Data, frozen=True):
    name: str
    value: str


SERVER_KEYS = ("type", "command", "args", "url")


def read_servers(given: list[Any]) -> tuple[dict[str, JsonObject], tuple[str, ...]]:
    """Convert servers to settings by name, the first of each name, with a message for each unusable one."""
    found: dict[str, JsonObject] = {}
    problems: list[str] = []
    for sent in given:
        server = sent if isinstance(sent, dict) else {}
        entry = {key: read_pairs(server[key]) for key in (*SERVER_KEYS, "env", "headers") if server.get(key)}
        name = make_server_name(re.sub(r"[^A-Za-z0-9]+", "-", str(server.get("name") or "")).strip("-"))
        fault = read_server(name, entry)
        if isinstance(fault, str):
            problems.append(f"The MCP server {name} cannot be used: {fault}.")
        else:
            found.setdefault(name, entry)
    return found, tuple(problems)


def read_pairs(value: Any) -> Any:
    """Convert a list of names and values to a mapping; return anything else unchanged."""
    try:
        return {one.name: one.value for one in msgspec.convert(value, list[NamedValue])}
    except msgspec.ValidationError:
        return value
