"""JSON-RPC with one editor: its requests become calls of `EditorSessions`, and ours wait for its answers.

The parameters of a request are those of the method that handles it, checked against its annotations.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import msgspec

from ollm.acp.transport import (
    ClientAbilities,
    ClientGoneError,
    ClientRefusedError,
    StdioTransport,
    build_introduction,
    read_abilities,
)
from ollm.app.process import redact_error
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnknownModelError, UsageError
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.system.process_tree import make_undumpable

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope

log = logging.getLogger("ollm.acp")
R = TypeVar("R")
WRONG_PARAMS, FAILED = -32602, -32603


class MethodMissingError(OllmError):
    """A method that this agent does not have."""


CODES: tuple[tuple[type[OllmError], int, str], ...] = (
    (MethodMissingError, -32601, "no-method"),
    (UsageError, WRONG_PARAMS, "invalid-params"),
    (UnknownModelError, WRONG_PARAMS, "unknown-model"),
    (NotFoundError, -32002, "not-found"),
    (BusyError, -32600, "busy"),
)
METHODS = {
    "session/new": "new_session",
    "session/load": "load_session",
    "session/resume": "resume_session",
    "session/list": "list_sessions",
    "session/close": "close_session",
    "session/delete": "delete_session",
    "session/prompt": "prompt",
    "session/cancel": "cancel",
    "session/set_mode": "set_session_mode",
    "session/set_config_option": "set_config_option",
}


class Choice(Data, frozen=True):
    """The answer to a question; without an option it was cancelled."""

    option_id: str | None = None


class PermissionReply(Data, frozen=True):
    outcome: Choice


class FileReply(Data, frozen=True):
    content: str


class EditorClient:
    """One editor. A request of ours that fails raises `ClientGoneError` or `ClientRefusedError`."""

    def __init__(self, transport: StdioTransport) -> None:
        self.abilities = ClientAbilities()
        self._transport = transport
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._sessions: asyncio.Task[object] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve_requests(self, load_sessions: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Serve requests, side by side, until the editor disconnects. The first one loads the sessions."""
        while (message := await self._transport.receive()) is not None:
            if self._sessions is None:
                self._sessions = self._start(load_sessions())
            if "method" in message:
                self._start(self._serve(message))
            else:
                self._take_answer(message)

    def _start(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop what is still being served."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, message: JsonObject) -> None:
        try:
            answer = {"result": await self._handle(message["method"], message["params"])}
        except OllmError as error:
            answer = {"error": describe_error(error)}
        except Exception as error:
            log.exception("A request failed.", extra={"operation": message["method"]})
            fault = redact_error(f"Internal error: {type(error).__name__}: {error}")
            answer = {"error": {"code": FAILED, "message": fault}}
        if "id" in message:
            try:
                await self._transport.send({"jsonrpc": "2.0", "id": message["id"], **answer})
            except ConnectionError:
                log.debug("The editor has gone away.", extra={"operation": message["method"]})

    async def _handle(self, method: str, params: Any) -> JsonObject:
        if method in ("initialize", "authenticate"):
            return await call_handler(getattr(self, method), params)
        if method not in METHODS:
            raise MethodMissingError(f"No method {method[:80]}.")
        assert self._sessions
        return await call_handler(getattr(await asyncio.shield(self._sessions), METHODS[method]), params)

    async def initialize(self, protocol_version: int, client_capabilities: JsonObject | None = None) -> JsonObject:
        self.abilities = read_abilities(client_capabilities or {})
        return build_introduction(protocol_version)

    async def authenticate(self) -> None:
        """Do nothing: an editor starts ollm as its own user, so there is nothing to authenticate."""

    async def send_update(self, session_id: str, update: JsonObject) -> None:
        """Send a session update to the editor. Does nothing if it has disconnected."""
        params = {"sessionId": session_id, "update": update}
        try:
            await self._transport.send({"jsonrpc": "2.0", "method": "session/update", "params": params})
        except ConnectionError:
            log.debug("The editor has gone away.", extra={"operation": "update"})

    async def ask_permission(self, session_id: str, call: JsonObject, options: list[JsonObject]) -> str | None:
        """Ask for permission. Returns the id of the chosen option, or None if the question was cancelled."""
        params = {"sessionId": session_id, "toolCall": call, "options": options}
        return (await self._request("session/request_permission", params, PermissionReply)).outcome.option_id

    async def read_text_file(self, session_id: str, path: str) -> str:
        params = {"sessionId": session_id, "path": path}
        return (await self._request("fs/read_text_file", params, FileReply)).content

    async def write_text_file(self, session_id: str, path: str, text: str) -> None:
        params = {"sessionId": session_id, "path": path, "content": text}
        await self._request("fs/write_text_file", params, object)

    async def _request(self, method: str, params: JsonObject, kind: type[R]) -> R:
        self._last_id = number = self._last_id + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        ended = asyncio.ensure_future(self._transport.ended.wait())
        try:
            await self._transport.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await asyncio.wait((answer, ended), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientGoneError("The editor has gone away.")
            return msgspec.convert(answer.result(), kind)
        except msgspec.ValidationError as error:
            raise ClientRefusedError("The editor's answer cannot be read.") from error
        except ConnectionError as error:
            raise ClientGoneError("The editor has gone away.") from error
        finally:
            ended.cancel()
            self._waiting.pop(number, None)

    def _take_answer(self, message: JsonObject) -> None:
        answer = self._waiting.pop(message["id"], None)
        if answer is None or answer.done():
            return
        if error := message.get("error"):
            answer.set_exception(ClientRefusedError(f"The editor answered with an error: {error.get('message')}"))
        else:
            answer.set_result(message.get("result"))  # JavaScript programs may omit a result of null.


async def call_handler(handle: Callable[..., Awaitable[JsonObject | None]], params: Any) -> JsonObject:
    """Call a handler with the parameters of a request. Raises UsageError if they do not fit."""
    try:
        found = msgspec.convert(params, build_params(handle))
    except msgspec.ValidationError as error:
        raise UsageError(f"Invalid params: {error}.") from error
    return await handle(**msgspec.structs.asdict(found)) or {}


def build_params(handle: Callable[..., Any]) -> type[msgspec.Struct]:
    """Build the type of a request's parameters from the signature of its handler."""
    hints, parameters = get_type_hints(handle), signature(handle).parameters
    fields: list[Any] = [
        (name, hints[name], *(() if one.default is one.empty else (one.default,))) for name, one in parameters.items()
    ]
    return msgspec.defstruct("Params", fields, rename="camel")


def describe_error(error: OllmError) -> JsonObject:
    """Describe an error in the protocol's form: a redacted message, and `data` with the reason and next step."""
    code, reason = next(((code, reason) for kind, code, reason in CODES if isinstance(error, kind)), (FAILED, "failed"))
    action = {"action": redact_error(error.action)} if error.action else {}
    return {"code": code, "message": redact_error(str(error)), "data": {"reason": reason, **action}}


ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve_editor(process: ProcessScope, flags: dict[str, Any], source: int, target: int) -> None:
    """Serve the protocol on two descriptors until the input ends or SIGTERM, SIGINT or SIGHUP arrives."""
    make_undumpable()
    transport = StdioTransport(source, target)
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        serving = asyncio.ensure_future(serve_requests(process, flags, transport, stack))
        for name in ENDING_SIGNALS:
            loop.add_signal_handler(name, serving.cancel)
        try:
            await asyncio.wait([serving])
        finally:
            for name in ENDING_SIGNALS:
                loop.remove_signal_handler(name)
    if not serving.cancelled():
        serving.result()


async def serve_requests(
    process: ProcessScope, flags: dict[str, Any], transport: StdioTransport, stack: AsyncExitStack
) -> None:
    """Serve requests. Cleanup is pushed onto `stack`."""
    stack.push_async_callback(transport.close)
    editor = EditorClient(transport)
    stack.push_async_callback(editor.close)

    async def load_sessions() -> Any:
        process.start_logging()
        module = await asyncio.to_thread(import_module, "ollm.acp.sessions")
        sessions = module.EditorSessions(process, editor, flags)
        stack.push_async_callback(sessions.close_all)
        stack.callback(asyncio.create_task(sessions.stop_after(transport.ended), name="end of input").cancel)
        return sessions

    await editor.serve_requests(load_sessions)


def claim_stdout() -> int:
    """Reserve stdout for the protocol and return its descriptor. Other output goes to stderr from now on."""
    sys.stdout.flush()
    target = os.dup(1)
    os.dup2(2, 1)
    return target
