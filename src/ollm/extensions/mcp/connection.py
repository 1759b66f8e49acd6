"""The connection to one server: opened when needed, reopened after a crash with growing pauses, up to a limit."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ollm.domain.errors import BusyError, OllmError, StartError, ToolFailure
from ollm.extensions.mcp.client_features import ClientFeatures
from ollm.extensions.mcp.http import may_be_newer
from ollm.extensions.mcp.results import mend_answer, mend_tool_list, summarize_error
from ollm.extensions.mcp.settings import DEFAULT_START_SECONDS, McpServer
from ollm.system.beneath import make_readable
from ollm.system.folders import measure_bytes
from ollm.system.install_command import describe_extra_install
from ollm.system.locks import OwnerLock
from ollm.system.processes import fail_future
from ollm.system.threads import run_in_thread

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
CLOSE_TIMEOUT_SECONDS = 2.0
MAX_FAILURES = 5
POLL_SECONDS = 2.0  # The download of a first start is measured so often.
FIRST_NEWS_SECONDS = 4.0
MAX_INSTALL_SECONDS = 3600.0
MIN_TOLD_BYTES = 100_000
MAX_RETRY_PAUSE_SECONDS = 8.0
FAILURE_KIND = "McpError"
INSTALLED = ".installed"  # A server that has answered once has this file in its folder.
LOST_SESSION_STATUSES = (400, 404)  # MCP prescribes 404, but many servers answer 400.

Open = Callable[["McpConnectionState"], AbstractAsyncContextManager[Any]]


class FirstStart:
    """The first start of a server, which installs it: the folder for what it downloads. Until the server has answered,
    nothing in it is its data, and the next try removes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = OwnerLock(folder.with_name(f"{folder.name}.lock"))
        self.runs = False

    def begin(self) -> None:
        """Remove what a failed first start left, unless another process is installing the server now."""
        self.runs = not (self._folder / INSTALLED).exists()
        if not self.runs:
            return
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(BusyError, FileNotFoundError):
            self._lock.acquire("The server's folder")
            make_readable(self._folder)
            shutil.rmtree(self._folder)

    def measure(self) -> int:
        """Return the bytes that were downloaded so far."""
        return measure_bytes(self._folder)

    def finish(self) -> None:
        if self.runs:
            (self._folder / INSTALLED).touch()
        self._lock.release()

    def end(self) -> None:
        self._lock.release()


class McpConnectionState:
    """State of one connection: whether it is lost, and why."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.why = ""
        self.status = 0  # It is the last HTTP status that was a refusal.
        self.last_words: Callable[[], str] = str
        self.install: FirstStart | None = None  # It is set if this start may install the server.

    def note_refusal(self, status: int) -> None:
        self.status = status

    def mark_lost(self, why: str) -> None:
        self.why = self.why or why
        self.over.set()

    def explain_loss(self) -> str:
        words = self.last_words()
        return f"{self.why}; last stderr: {words}" if words else self.why


class SessionLostError(Exception):
    """The server has forgotten the session it issued."""


class McpConnection:
    """A connection to one server. After a crash the next request reconnects; a success resets the failure count."""

    def __init__(
        self,
        server: McpServer,
        open_transport: Open,
        workspace: Path,
        search_path: str,
        features: ClientFeatures,
    ) -> None:
        self.server = server
        self.features = features
        self.features.pause = self._pause_deadlines
        self._workspace = workspace
        self._search_path = search_path  # Programs are looked for here.
        self.approve: Callable[[McpServer], Awaitable[None]] | None = None  # Servers of the settings need no question.
        self.installing = False
        self.failures = 0
        self._deadlines: set[asyncio.Timeout] = set()  # Each waiting request has one.
        self._open = open_transport
        self._line: McpConnectionState | None = None
        self._client: Client | None = None
        self._holding: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    @property
    def is_usable(self) -> bool:
        return self.failures < MAX_FAILURES

    async def ask(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request. Raises ToolFailure if the server fails, refuses or takes too long. A server that has
        forgotten the session has done nothing, so the request is repeated in a new session."""
        if self.approve is not None:
            await self.approve(self.server)
        client, line = await self._ensure_connected()
        try:
            return await self._ask_once(request, client, line)
        except SessionLostError:
            line.mark_lost("the server forgot the session")
        client, line = await self._ensure_connected()
        try:
            return await self._ask_once(request, client, line)
        except SessionLostError as error:
            raise self._make_failure(f"answered with an error: {error}") from error

    async def _ask_once(self, request: Callable[[Client], Awaitable[T]], client: Client, line: McpConnectionState) -> T:
        line.status = 0
        try:
            async with self._limit_time():
                answer = await request(client)
        except TimeoutError as error:
            seconds = f"{self.server.timeout:g} s"
            raise ToolFailure(
                "Timeout", f"The MCP server {self.server.name} did not answer within {seconds}."
            ) from error
        except OllmError:
            raise
        except Exception as error:
            await asyncio.sleep(0)
            if line.over.is_set():
                self.failures += 1
                raise self._make_failure(f"stopped during the call ({line.explain_loss()})") from error
            if self.server.url and line.status in LOST_SESSION_STATUSES:
                raise SessionLostError(summarize_error(error)) from error
            raise self._make_failure(f"answered with an error: {summarize_error(error)}") from error
        self.failures = 0
        return answer

    @asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        async with asyncio.timeout(self.server.timeout) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)

    def extend_deadlines(self) -> None:
        """Restart the time limits of waiting requests because the server reported progress."""
        self._reschedule(asyncio.get_running_loop().time() + self.server.timeout)

    @asynccontextmanager
    async def _pause_deadlines(self) -> AsyncIterator[None]:
        """Suspend time limits while a person answers."""
        self._reschedule(None)
        try:
            yield
        finally:
            self.extend_deadlines()

    def _reschedule(self, when: float | None) -> None:
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(when)

    async def close(self) -> None:
        """Close the connection and end the server's processes."""
        if self._line is not None:
            self._line.mark_lost("the conversation has ended")
        if self._holding is not None and not self._holding.done():
            await asyncio.wait({self._holding}, timeout=CLOSE_TIMEOUT_SECONDS)
            self._holding.cancel()
            await asyncio.wait({self._holding}, timeout=CLOSE_TIMEOUT_SECONDS)
        self._client = None

    async def _ensure_connected(self) -> tuple[Client, McpConnectionState]:
        async with self._opening:
            if self._client is None or self._line is None or self._line.over.is_set():
                if self.failures >= MAX_FAILURES:
                    raise self._make_failure(f"failed {self.failures} times and is disabled for this conversation")
                if self.failures > 1:
                    await asyncio.sleep(min(0.25 * 2**self.failures, MAX_RETRY_PAUSE_SECONDS))
                await self._connect()
            assert self._client is not None
            assert self._line is not None
            return self._client, self._line

    async def _connect(self) -> None:
        self._check_program()
        await import_sdk()
        line, ready = McpConnectionState(), asyncio.get_running_loop().create_future()
        holding = self._holding = asyncio.create_task(self._hold_line(line, ready), name=f"mcp {self.server.name}")
        try:
            await self._wait_for_start(line, {ready, holding})
            if not ready.done():
                line.mark_lost(f"no initialize reply within {self.server.start_timeout:g} s (startTimeout)")
                raise self._make_failure(self._explain_start(line), "Timeout")
            self._client = ready.result()
            if line.install:
                await asyncio.to_thread(line.install.finish)
        except asyncio.CancelledError:
            holding.cancel()
            raise
        except OllmError:
            self.failures += 1
            holding.cancel()
            raise
        finally:
            self.installing = False
        self._line = line

    async def _wait_for_start(self, line: McpConnectionState, ends: set[asyncio.Future[Any]]) -> None:
        """Wait for the first reply. A first start that installs the server has as long as it downloads: the time limit
        begins anew with everything that arrives."""
        clock = asyncio.get_running_loop().time
        began, size, news_at = clock(), 0, FIRST_NEWS_SECONDS
        idle_since, limit = began, self.server.start_timeout
        while clock() - idle_since < limit and clock() - began < MAX_INSTALL_SECONDS:
            left = min(limit - (clock() - idle_since), POLL_SECONDS)
            if (await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED))[0]:
                return
            if not (line.install and line.install.runs):
                continue
            before, size = size, await asyncio.to_thread(line.install.measure)
            if size != before:
                idle_since, self.installing = clock(), True
                limit = max(limit, DEFAULT_START_SECONDS)  # A new program may compile itself before it answers.
            if size > MIN_TOLD_BYTES and clock() - began >= news_at:
                news_at *= 2
                self.features.tell(f"Installing the MCP server {self.server.name}: {size / 1e6:,.1f} MB so far.")

    def _explain_start(self, line: McpConnectionState) -> str:
        """Explain a failed start, with the way out."""
        test = f"`ollm mcp test {self.server.name}`"
        way_out = f"Try {test}, or a longer mcpServers.{self.server.name}.startTimeout"
        if line.install and line.install.runs and self.installing:
            way_out = f"Its unfinished install is removed at the next try: {test}"
        elif line.install and line.last_words():
            fix = "Check its command" if line.install.runs else "Remove its downloads with `ollm doctor --clean`"
            way_out = f"{fix}, then {test}"
        return f"cannot be used: {line.explain_loss()}. {way_out}"

    def _check_program(self) -> None:
        """Report a missing program before any other work."""
        command = self.server.command
        is_beside = os.sep in command and (self._workspace / self.server.cwd / command).exists()
        if command and not is_beside and not shutil.which(command, path=self._search_path):
            self.failures = MAX_FAILURES
            raise self._make_failure(f"cannot be started: there is no program {command}")

    async def _hold_line(self, line: McpConnectionState, ready: asyncio.Future[Client]) -> None:
        """Keep the connection open in a separate task: the SDK must exit contexts in the task that entered them."""
        try:
            await self._hold_some_way(line, ready)
        except StartError as error:
            fail_future(ready, self._make_failure(f"cannot be started: {error.message}"))
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises for a foreign server is that server's failure
            line.mark_lost(self._explain_refusal(line.status, summarize_error(error)))
            fail_future(ready, self._make_failure(self._explain_start(line)))
        finally:
            if line.install:
                line.install.end()

    async def _hold_some_way(self, line: McpConnectionState, ready: asyncio.Future[Client]) -> None:
        """Connect in `legacy` mode, whose handshake lets a server ask questions and announce changed tools. If a server
        at an address refuses it, connect in `auto` mode."""
        try:
            await self._hold_client("legacy", line, ready)
        except Exception as error:
            if not self.server.url or ready.done() or not may_be_newer(line.status, error):
                raise
            line.status = 0
            await self._hold_client("auto", line, ready)

    async def _hold_client(self, mode: str, line: McpConnectionState, ready: asyncio.Future[Client]) -> None:
        from mcp import Client

        async with Client(self._open(line), mode=mode, **self.features.build_options()) as client:
            # Output schemas come from the server; checking them would run its regular expressions.
            client.session.validate_tool_result = _skip_validation  # type: ignore[method-assign,assignment]
            _mend_answers(client)
            ready.set_result(client)
            await line.over.wait()

    def _explain_refusal(self, status: int, said: str) -> str:
        if status == 401:
            return f"it wants a login (HTTP 401): run `ollm mcp login {self.server.name}`, or set headers.Authorization"
        if status in (400, 404, 405) and not self.server.transport:
            return f"{said} (HTTP {status}; an older server that streams events needs type: sse)"
        return f"it refuses the key (HTTP {status})" if status == 403 else said

    def _make_failure(self, what: str, kind: str = FAILURE_KIND) -> ToolFailure:
        return ToolFailure(kind, f"The MCP server {self.server.name} {what}.")


async def _skip_validation(_name: str, _result: object) -> None: ...


def _mend_answers(client: Client) -> None:
    """Repair answers before the SDK validates them: one bad tool or block must not lose the whole answer."""
    mends = {"tools/list": mend_tool_list, "tools/call": mend_answer}

    dispatcher = client.session._dispatcher  # noqa: SLF001 - the only place between the wire and the check
    send = dispatcher.send_raw_request

    async def send_mended(method: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        answer = await send(method, *arguments, **options)
        return await asyncio.to_thread(mends[method], answer) if method in mends else answer

    dispatcher.send_raw_request = send_mended  # type: ignore[method-assign]


async def import_sdk() -> None:
    """Import the SDK in a thread: it takes seconds, and the screen must stay responsive."""
    if "mcp.client.client" in sys.modules:
        return

    def load() -> None:
        import mcp.client.client
        import mcp.client.streamable_http  # noqa: F401 - named so that both are there

    try:
        await run_in_thread(load)
    except ImportError as error:
        raise ToolFailure(FAILURE_KIND, f"MCP servers need an extra: {describe_extra_install('mcp')}.") from error
