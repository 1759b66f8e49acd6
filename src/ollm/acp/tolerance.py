"""What editors send a little wrong is taken as it was meant, and what is wrong is answered in words."""

from __future__ import annotations

import re
from typing import Any

from ollm.acp.mcp_servers import complete_servers
from ollm.acp.transport import StdioTransport

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
    """What the library found wrong with parameters, as a person reads it."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    found = data.get("errors") if isinstance(data, dict) else None
    if not isinstance(error, dict) or not isinstance(found, list):
        return message
    words = "; ".join(describe_flaw(one) for one in found[:MAX_NAMED_ERRORS])
    said = {"code": error["code"], "message": f"Invalid params: {words[:MAX_WORDS_CHARS]}."}
    return {**message, "error": {**said, "data": {"reason": "invalid-params"}}}


def describe_flaw(flaw: dict[str, Any]) -> str:
    """Where it is and what is wrong there."""
    where = ".".join(map(str, flaw.get("loc", ()))) or "params"
    if known := WORDS.get(str(flaw.get("type"))):
        return f"{where} {known}"
    return f"{where}: {re.sub(r' or instance of [A-Za-z]+', '', str(flaw.get('msg', 'cannot be read')))}"
