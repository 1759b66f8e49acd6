"""Speaking to the daemon: requests, answers, the events of a stream, and its problems as the errors they were."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ollm.daemon.bodies import InitReply, Problem, SessionLine
from ollm.domain.errors import BusyError, NoServerError, NotFoundError, OllmError, UnsavedError, UsageError
from ollm.domain.events import AnyEvent
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
    ) -> AsyncIterator[AsyncIterator[AnyEvent]]:
        """The events of an answer; `last` is the number of the last one known."""
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


async def decode_events(chunks: AsyncGenerator[bytes, None]) -> AsyncIterator[AnyEvent]:
    async with aclosing(iter_server_events(chunks)) as events:
        async for event in events:
            yield msgspec.json.decode(event.data, type=AnyEvent)


def make_error(status: int, body: bytes) -> OllmError:
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        return OllmError(f"The daemon answered {status}.")
    return ERRORS_BY_STATUS.get(status, OllmError)(problem.detail, action=problem.action)


async def list_remote_sessions(client: DaemonClient, workspace: Path) -> list[SessionLine]:
    from urllib.parse import quote

    return await client.call("GET", f"/workspaces/{quote(str(workspace), safe='')}/sessions", type=list[SessionLine])


async def initialise_workspace(client: DaemonClient, workspace: Path) -> InitReply:
    """What the daemon knows of a workspace: whether it is trusted, and its sessions (W134)."""
    return await client.call("POST", "/init", {"workspacePath": str(workspace)}, type=InitReply)
