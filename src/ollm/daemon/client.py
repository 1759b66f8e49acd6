"""The daemon's client: requests, event streams, and problem documents as errors."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ollm.daemon.bodies import Accepted, CreatedReply, OpenReply, Problem
from ollm.domain.errors import BusyError, NoServerError, NotFoundError, OllmError, UnsavedError, UsageError
from ollm.domain.events import AnyEvent, Event, MessageRecorded, TurnFinished, TurnStarted
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import Attachment, CommandReply, ForeignTurn, Status
from ollm.system.http import Client, HttpFailure, Timeouts, iter_server_events, open_client

T = TypeVar("T")
DAEMON_TIMEOUTS = Timeouts(connect=5, first=600, stall=float(10**9))
ERRORS_BY_STATUS: dict[int, type[OllmError]] = {
    400: UsageError,
    404: NotFoundError,
    409: BusyError,
    422: UsageError,
    507: UnsavedError,
}


class DaemonClient:
    """Speaks HTTP over the daemon's socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)
        self._client = self._open_client({})

    def _open_client(self, headers: dict[str, str]) -> Client:
        return open_client("http://localhost", socket_path=self._socket, timeouts=DAEMON_TIMEOUTS, headers=headers)

    async def call(self, method: str, path: str, body: Any = None, *, type: type[T]) -> T:  # noqa: A002
        content = b"" if body is None else msgspec.json.encode(body)
        try:
            whole = await self._client.fetch(method, path, content)
        except HttpFailure as error:
            raise NoServerError(
                f"The daemon does not respond: {error}.", action="Start it with `ollm daemon start`."
            ) from error
        if whole.status >= 400:
            raise make_error(whole.status, whole.body)
        return msgspec.json.decode(whole.body or b"null", type=type)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, last: int | None = None
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Stream the events of an answer; `last` is the number of the last one known."""
        content = b"" if body is None else msgspec.json.encode(body)
        client = self._client if last is None else self._open_client({"last-event-id": str(last)})
        try:
            async with client.stream(method, path, content) as response:
                if response.status >= 400:
                    raise make_error(response.status, b"".join([chunk async for chunk in response.iter_chunks()]))
                yield decode_events(response.iter_chunks())
        finally:
            if client is not self._client:
                await client.close()

    async def close(self) -> None:
        await self._client.close()


async def decode_events(chunks: AsyncGenerator[bytes, None]) -> AsyncIterator[Event]:
    async with aclosing(iter_server_events(chunks)) as events:
        async for event in events:
            yield msgspec.json.decode(event, type=AnyEvent)


def make_error(status: int, body: bytes) -> OllmError:
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        return OllmError(f"The daemon answered {status}.")
    return ERRORS_BY_STATUS.get(status, OllmError)(problem.detail, action=problem.action)


MAX_RECONNECTS = 5
TYPING_SECONDS = 1.0  # Time between two notes that somebody types.
PIECE_BYTES = 600_000  # A larger attachment is sent in several requests.


class RemoteConversation:
    """A `Conversation` whose turn runs in the daemon.

    A lost stream is resumed where it broke; a session that was closed there meanwhile, as by a new start of the
    daemon, is opened again."""

    def __init__(self, client: DaemonClient, opened: OpenReply, workspace: str) -> None:
        self._client = client
        self._id = opened.session_id
        self._workspace = workspace
        self._last = 0
        self._client_left = False
        self._told_typing = -TYPING_SECONDS
        self._telling: asyncio.Task[None] | None = None  # A task without a reference may vanish before it is done.

    @property
    def session_id(self) -> str | None:
        return self._id

    @asynccontextmanager
    async def turn(self, text: str, attachments: tuple[Attachment, ...] = ()) -> AsyncIterator[AsyncIterator[Event]]:
        finished: list[TurnFinished] = []
        await self._ensure_open()
        body = {"text": text, "attachments": [await self._upload_attachment(found) for found in attachments]}

        async def events() -> AsyncIterator[Event]:
            async for event in self._stream_turn(body):
                if isinstance(event, TurnFinished):
                    finished.append(event)
                yield event

        try:
            yield events()
        finally:
            if not finished and not self._client_left:
                await self.cancel()

    @asynccontextmanager
    async def follow_turn(self, after: int) -> AsyncIterator[AsyncIterator[Event]]:
        self._last = after
        yield self._stream_rest()

    async def wait_for_foreign_turn(self) -> ForeignTurn | None:
        """Wait for a turn that another client starts; None when the daemon ends the stream."""
        asked = 0
        try:
            async with self._client.stream("GET", self._build_path("events"), last=self._last) as events:
                async for event in events:
                    self._last = event.seq
                    if isinstance(event, MessageRecorded) and event.role == "user":
                        asked = event.message_id
                    if isinstance(event, TurnStarted):
                        return ForeignTurn(text=await self._fetch_message_text(asked), after=event.seq - 1)
        except (HttpFailure, OllmError):
            pass
        return None

    async def _fetch_message_text(self, number: int) -> str:
        page = await self.history(before=number + 1, limit=1) if number else []
        parts = page[-1]["parts"] if page and page[-1]["id"] == number else []
        return "".join(part["text"] for part in parts if part["type"] == "text")

    async def _upload_attachment(self, attachment: Attachment) -> str:
        """Send an attachment in pieces that fit a request; returns its id."""
        image = attachment.image
        content = base64.b64decode(image.data) if image else attachment.text.encode("utf-8", "replace")
        kind = image.media_type if image else "text/plain"
        body: dict[str, Any] = {"name": attachment.name[-200:], "mediaType": kind}
        for start in range(0, max(len(content), 1), PIECE_BYTES):
            piece = {**body, "data": content[start : start + PIECE_BYTES]}
            body["id"] = (await self._client.call("POST", self._build_path("attachments"), piece, type=CreatedReply)).id
        return str(body["id"])

    async def _stream_turn(self, body: dict[str, Any]) -> AsyncIterator[Event]:
        """Send the text once; if the stream breaks off, read the rest from the session's events."""
        before = self._last
        try:
            async with self._client.stream("POST", self._build_path("messages"), body) as events:
                async for event in events:
                    self._last = event.seq
                    yield event
                    if isinstance(event, TurnFinished):
                        return
        except HttpFailure as error:
            if self._last == before and (await self.status()).last_event == before:
                raise NoServerError(
                    f"Lost the connection to the daemon: {error}.", action="Send your message again."
                ) from error
        async for event in self._stream_rest():
            yield event

    async def _ensure_open(self) -> None:
        try:
            await self.status()
        except NotFoundError:
            body = {"workspacePath": self._workspace, "sessionId": self._id}
            await self._client.call("POST", "/sessions", body, type=OpenReply)
            self._last = 0  # A restarted daemon counts its events from the start.
            await self.status()

    async def _stream_rest(self) -> AsyncIterator[Event]:
        for _ in range(MAX_RECONNECTS):
            try:
                async with self._client.stream("GET", self._build_path("events"), last=self._last) as events:
                    async for event in events:
                        self._last = event.seq
                        yield event
                        if isinstance(event, TurnFinished):
                            return
            except HttpFailure:
                continue
        raise NoServerError("The daemon stopped.", action="Resume with `ollm --continue`.")

    async def respond(self, correlation_id: str, answer: ConfirmationAnswer) -> bool:
        try:
            reply = await self._client.call(
                "POST", self._build_path(f"confirmations/{correlation_id}"), answer, type=Accepted
            )
        except BusyError:
            return False
        return reply.accepted

    def note_typing(self) -> None:
        """Tell the daemon, at most once a second, and ignore failures."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._told_typing >= TYPING_SECONDS:
            self._told_typing = loop.time()
            self._telling = loop.create_task(self._tell_typing(), name="typing")

    async def _tell_typing(self) -> None:
        with suppress(OllmError, HttpFailure):
            await self._client.call("POST", self._build_path("typing"), type=Accepted)

    async def cancel(self) -> None:
        await self._client.call("POST", self._build_path("cancel"), type=Accepted)

    async def command(self, name: str, arguments: str = "") -> CommandReply:
        await self._ensure_open()
        body = {"name": name, "arguments": arguments}
        return await self._client.call("POST", self._build_path("commands"), body, type=CommandReply)

    async def status(self) -> Status:
        status = await self._client.call("GET", self._build_path("status"), type=Status)
        self._last = self._last or status.last_event
        return status

    async def history(self, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:
        earlier = f"&before={before}" if before else ""
        return await self._client.call(
            "GET", self._build_path(f"history?limit={limit}{earlier}"), type=list[dict[str, Any]]
        )

    async def close(self) -> None:
        """Close the connection; the session stays open in the daemon, and its turn continues."""
        self._client_left = True
        if self._telling is not None:
            self._telling.cancel()
        await self._client.close()

    def _build_path(self, rest: str) -> str:
        return f"/sessions/{self._id}/{rest}"


async def open_remote(client: DaemonClient, body: dict[str, Any]) -> RemoteConversation:
    opened = await client.call("POST", "/sessions", body, type=OpenReply)
    return RemoteConversation(client, opened, body["workspacePath"])
