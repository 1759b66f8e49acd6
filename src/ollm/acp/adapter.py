"""The only module that uses the protocol's library: it maps requests to `EditorSessions` and our JSON to its types.

The other modules use the protocol's JSON. Outgoing messages are checked against the library's schema.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from acp import RequestError
from acp import schema as wire
from acp.core import AgentSideConnection
from acp.utils import normalize_result
from pydantic import BaseModel, ValidationError

from ollm.acp.transport import ClientGoneError, ClientRefusedError, StdioTransport
from ollm.app import redact_error
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnknownModelError, UsageError
from ollm.domain.messages import JsonObject

log = logging.getLogger("ollm.acp")
R = TypeVar("R")
CODES: tuple[tuple[type[OllmError], int, str], ...] = (
    (UsageError, -32602, "invalid-params"),
    (UnknownModelError, -32602, "unknown-model"),
    (NotFoundError, -32002, "not-found"),
    (BusyError, -32600, "busy"),
)
FAILED = -32603
# The library's names of the requests, as `EditorSessions` has them, with the types of their answers.
REQUESTS: dict[str, type[BaseModel] | None] = {
    "initialize": wire.InitializeResponse,
    "authenticate": None,
    "new_session": wire.NewSessionResponse,
    "load_session": wire.LoadSessionResponse,
    "resume_session": wire.ResumeSessionResponse,
    "list_sessions": wire.ListSessionsResponse,
    "close_session": None,
    "delete_session": None,
    "prompt": wire.PromptResponse,
    "cancel": None,
    "set_session_mode": None,
    "set_config_option": wire.SetSessionConfigOptionResponse,
}


def make_handler(
    name: str, handle: Callable[..., Awaitable[Any]], answer: type[BaseModel] | None
) -> Callable[..., Awaitable[Any]]:
    """Wrap `handle`, which takes plain JSON, and convert its result and errors to the library's types."""

    async def run(**params: Any) -> Any:
        try:
            found = await handle(**{key: dump(value) for key, value in params.items()})
            return answer.model_validate(found) if answer else None
        except OllmError as error:
            raise make_request_error(error) from error
        except (RequestError, ValidationError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("A request failed.", extra={"operation": name})
            raise RequestError(FAILED, redact_error(f"Internal error: {type(error).__name__}: {error}")) from error

    return run


def make_request_error(error: OllmError) -> RequestError:
    """Convert an error to the protocol's form: a redacted message, and `data` with the reason and next step."""
    code, reason = next(((code, reason) for kind, code, reason in CODES if isinstance(error, kind)), (FAILED, "failed"))
    action = {"action": redact_error(error.action)} if error.action else {}
    return RequestError(code, redact_error(str(error)), {"reason": reason, **action})


def dump(value: Any) -> Any:
    if isinstance(value, list):
        return [dump(each) for each in value]
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if isinstance(value, BaseModel) else value


class EditorClient:
    """Client for requests to the editor. A failed request raises `ClientGoneError` or `ClientRefusedError`."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport
        self._connection: AgentSideConnection | None = None

    def connect(self, sessions: object) -> AgentSideConnection:
        """Create the connection. Its `listen` serves requests until the editor disconnects."""
        handlers = {name: make_handler(name, getattr(sessions, name), answer) for name, answer in REQUESTS.items()}
        agent: Any = SimpleNamespace(**handlers)
        transport: Any = self._transport
        self._connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
        router: Any = self._connection._conn._handler  # noqa: SLF001 - the library does not route it yet
        router.route_request(
            "session/delete", wire.DeleteSessionRequest, agent, "delete_session", adapt_result=normalize_result
        )
        return self._connection

    @property
    def _open(self) -> AgentSideConnection:
        if self._connection is None:
            raise ClientGoneError("No editor is connected.")
        return self._connection

    async def send_update(self, session_id: str, update: JsonObject) -> None:
        """Send a session update to the editor. Does nothing if it has disconnected."""
        note = wire.SessionNotification.model_validate({"sessionId": session_id, "update": update})
        try:
            await self._open.session_update(session_id, note.update)
        except ConnectionError:
            log.debug("The editor has gone away.", extra={"operation": "update"})

    async def ask_permission(self, session_id: str, call: JsonObject, options: list[JsonObject]) -> str | None:
        """Ask for permission. Returns the id of the chosen option, or None if the question was cancelled."""
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
        """Wait for an answer. Raises ClientGoneError or ClientRefusedError."""
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
