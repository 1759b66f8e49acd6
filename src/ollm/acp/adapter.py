"""The one module that knows the protocol's library: its requests become calls of `EditorSessions`, our JSON its types.

Everything else here speaks the protocol's own JSON; what goes out is checked against the library's schema.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from acp import RequestError
from acp import schema as wire
from acp.core import AgentSideConnection
from pydantic import BaseModel, ValidationError

from ollm.acp.client import ClientAbilities, ClientGoneError, ClientRefusedError, complete_servers
from ollm.acp.transport import StdioTransport, build_introduction, read_abilities
from ollm.app import redact_error
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnknownModelError, UsageError
from ollm.domain.messages import JsonObject

NOTIFICATIONS = ("session/cancel",)
MAX_NAMED_ERRORS = 5
MAX_WORDS_CHARS = 500
WORDS = {"missing": "is required", "model_type": "must be an object", "list_type": "must be a list"}


class TolerantTransport:
    """Between the protocol's library and the descriptors."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport

    async def receive(self) -> dict[str, Any] | None:
        """The next message; a notification that asks for an answer is answered with nothing."""
        message = await self._transport.receive()
        if message and message.get("method") in NOTIFICATIONS and "id" in message:
            await self._transport.send({"jsonrpc": "2.0", "id": message.pop("id"), "result": None})
        params = message.get("params") if message else None
        if isinstance(params, dict) and isinstance(params.get("mcpServers"), list):
            params["mcpServers"] = complete_servers(params["mcpServers"])
        return message

    async def send(self, message: dict[str, Any]) -> None:
        await self._transport.send(explain_error(message))

    async def close(self) -> None:
        await self._transport.close()


def explain_error(message: dict[str, Any]) -> dict[str, Any]:
    """Describe invalid parameters, as the library reports them, for a person."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    found = data.get("errors") if isinstance(data, dict) else None
    if not isinstance(error, dict) or not isinstance(found, list):
        return message
    words = "; ".join(describe_flaw(one) for one in found[:MAX_NAMED_ERRORS])
    said = {"code": error["code"], "message": f"Invalid params: {words[:MAX_WORDS_CHARS]}."}
    return {**message, "error": {**said, "data": {"reason": "invalid-params"}}}


def describe_flaw(flaw: dict[str, Any]) -> str:
    """Name the place of a flaw and what is wrong there."""
    where = ".".join(map(str, flaw.get("loc", ()))) or "params"
    if known := WORDS.get(str(flaw.get("type"))):
        return f"{where} {known}"
    return f"{where}: {re.sub(r' or instance of [A-Za-z]+', '', str(flaw.get('msg', 'cannot be read')))}"


log = logging.getLogger("ollm.acp")
P = ParamSpec("P")
R = TypeVar("R")
CODES: tuple[tuple[type[OllmError], int, str], ...] = (
    (UsageError, -32602, "invalid-params"),
    (UnknownModelError, -32602, "unknown-model"),
    (NotFoundError, -32002, "not-found"),
    (BusyError, -32600, "busy"),
)
FAILED = -32603


class EditorRequests(Protocol):
    """Requests an editor can make; answers are the protocol's JSON."""

    def set_abilities(self, abilities: ClientAbilities) -> None: ...

    async def create(self, cwd: str, servers: list[JsonObject]) -> JsonObject: ...

    async def load(self, session_id: str, cwd: str, servers: list[JsonObject], *, replay: bool) -> JsonObject: ...

    async def list_sessions(self, cwd: str | None, cursor: str | None) -> JsonObject: ...

    async def close(self, session_id: str) -> None: ...

    async def prompt(self, session_id: str, blocks: list[JsonObject]) -> JsonObject: ...

    async def cancel(self, session_id: str) -> None: ...

    async def set_mode(self, session_id: str, mode: str) -> None: ...

    async def set_option(self, session_id: str, option: str, value: str | bool) -> JsonObject: ...


def answer_errors(handle: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Convert errors meant for a person to the protocol's errors, without secrets."""

    @wraps(handle)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await handle(*args, **kwargs)
        except OllmError as error:
            raise make_request_error(error) from error
        except (RequestError, ValidationError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("A request failed.", extra={"operation": handle.__name__})
            raise RequestError(FAILED, redact_error(f"Internal error: {type(error).__name__}: {error}")) from error

    return run


def make_request_error(error: OllmError) -> RequestError:
    """Say what happened and what to do next; `data` says it to programs."""
    code, reason = next(((code, reason) for kind, code, reason in CODES if isinstance(error, kind)), (FAILED, "failed"))
    action = {"action": redact_error(error.action)} if error.action else {}
    return RequestError(code, redact_error(str(error)), {"reason": reason, **action})


class AgentAdapter:
    """Methods the library calls, by its names."""

    def __init__(self, requests: EditorRequests) -> None:
        self._requests = requests

    @answer_errors
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: wire.ClientCapabilities | None = None,
        client_info: wire.Implementation | None = None,
        **_: Any,
    ) -> wire.InitializeResponse:
        given = client_capabilities.model_dump(mode="json", by_alias=True) if client_capabilities else {}
        self._requests.set_abilities(read_abilities(given))
        return wire.InitializeResponse.model_validate(build_introduction(protocol_version))

    @answer_errors
    async def authenticate(self, method_id: str, **_: Any) -> None:
        """There is nothing to prove: an editor starts us as the person it belongs to."""

    @answer_errors
    async def new_session(
        self, cwd: str, mcp_servers: list[BaseModel] | None = None, **_: Any
    ) -> wire.NewSessionResponse:
        return wire.NewSessionResponse.model_validate(await self._requests.create(cwd, dump_all(mcp_servers)))

    @answer_errors
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[BaseModel] | None = None, **_: Any
    ) -> wire.LoadSessionResponse:
        servers = dump_all(mcp_servers)
        return wire.LoadSessionResponse.model_validate(await self._requests.load(session_id, cwd, servers, replay=True))

    @answer_errors
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[BaseModel] | None = None, **_: Any
    ) -> wire.ResumeSessionResponse:
        servers = dump_all(mcp_servers)
        return wire.ResumeSessionResponse.model_validate(
            await self._requests.load(session_id, cwd, servers, replay=False)
        )

    @answer_errors
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> wire.ListSessionsResponse:
        return wire.ListSessionsResponse.model_validate(await self._requests.list_sessions(cwd, cursor))

    @answer_errors
    async def close_session(self, session_id: str, **_: Any) -> None:
        await self._requests.close(session_id)

    @answer_errors
    async def prompt(self, session_id: str, prompt: list[BaseModel], **_: Any) -> wire.PromptResponse:
        return wire.PromptResponse.model_validate(await self._requests.prompt(session_id, dump_all(prompt)))

    @answer_errors
    async def cancel(self, session_id: str, **_: Any) -> None:
        await self._requests.cancel(session_id)

    @answer_errors
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        await self._requests.set_mode(session_id, mode_id)

    @answer_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> wire.SetSessionConfigOptionResponse:
        return wire.SetSessionConfigOptionResponse.model_validate(
            await self._requests.set_option(session_id, config_id, value)
        )


class EditorClient:
    """The editor, as our side calls it. What it does not answer raises `ClientGoneError` or `ClientRefusedError`."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport
        self._connection: AgentSideConnection | None = None

    def connect(self, requests: EditorRequests) -> AgentSideConnection:
        """Begin to speak; `listen` on the result serves until the editor goes away."""
        agent: Any = AgentAdapter(requests)
        tolerant: Any = TolerantTransport(self._transport)
        self._connection = AgentSideConnection(agent, tolerant, listening=False, use_unstable_protocol=True)
        return self._connection

    @property
    def _open(self) -> AgentSideConnection:
        if self._connection is None:
            raise ClientGoneError("No editor is connected.")
        return self._connection

    async def send_update(self, session_id: str, update: JsonObject) -> None:
        """Show something; an editor that has gone away is not told."""
        note = wire.SessionNotification.model_validate({"sessionId": session_id, "update": update})
        try:
            await self._open.session_update(session_id, note.update)
        except ConnectionError:
            log.debug("The editor has gone away.", extra={"operation": "update"})

    async def ask_permission(self, session_id: str, call: JsonObject, options: list[JsonObject]) -> str | None:
        """The id of the option that was chosen; None when the question was withdrawn."""
        asked = wire.RequestPermissionRequest.model_validate(
            {"sessionId": session_id, "toolCall": call, "options": options}
        )
        answer = await self._wait(self._open.request_permission(session_id, asked.tool_call, asked.options))
        return answer.outcome.option_id if isinstance(answer.outcome, wire.AllowedOutcome) else None

    async def read_text_file(self, session_id: str, path: str) -> str:
        text: str = (await self._wait(self._open.read_text_file(session_id, path))).content
        return text

    async def write_text_file(self, session_id: str, path: str, text: str) -> None:
        await self._wait(self._open.write_text_file(session_id, path, text))

    async def _wait(self, request: Awaitable[R]) -> R:
        """The answer, as long as there can be one."""
        answer = asyncio.ensure_future(request)
        ended = asyncio.ensure_future(self._transport.ended.wait())
        try:
            await asyncio.wait((answer, ended), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientGoneError("The editor has gone away.")
            return answer.result()
        except RequestError as error:
            raise ClientRefusedError(f"The editor answered with an error: {error}") from error
        except ValidationError as error:
            raise ClientRefusedError("The editor's answer cannot be read.") from error
        except ConnectionError as error:
            raise ClientGoneError("The editor has gone away.") from error
        finally:
            ended.cancel()
            if not answer.done():
                answer.cancel()


def dump_all(models: list[BaseModel] | None) -> list[JsonObject]:
    return [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models or ()]
