"""What an editor and the agent tell each other first. It needs nothing of the protocol's library, which takes a second
to load: an editor that has just been opened is answered before that."""

from __future__ import annotations

from typing import Any

from ollm import __version__
from ollm.acp.client import ClientAbilities
from ollm.acp.transport import StdioTransport
from ollm.domain.messages import JsonObject

PROTOCOL_VERSION = 1
MAX_VERSION = 65_535
AGENT_CAPABILITIES: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
}


async def greet_editor(transport: StdioTransport) -> ClientAbilities | None:
    """Answer the first message, if it is a plain `initialize`; any other is left to whoever receives next. None: there
    was no message, or another one."""
    message = await transport.receive()
    if message is None:
        return None
    params: Any = message.get("params")
    if message.get("method") != "initialize" or "id" not in message or not is_plain_introduction(params):
        transport.put_back(message)
        return None
    result = build_introduction(params["protocolVersion"])
    await transport.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return read_abilities(params.get("clientCapabilities") or {})


def is_plain_introduction(params: object) -> bool:
    """Whether it can be read without the library, which has the last word on everything else."""
    if not isinstance(params, dict) or not isinstance(params.get("clientCapabilities"), dict | None):
        return False
    version, files = params.get("protocolVersion"), (params.get("clientCapabilities") or {}).get("fs")
    abilities = files.values() if isinstance(files, dict) else () if files is None else (files,)
    return type(version) is int and 0 <= version <= MAX_VERSION and all(isinstance(each, bool) for each in abilities)


def build_introduction(version: int) -> JsonObject:
    """What the agent says of itself to an editor that speaks `version`."""
    return {
        "protocolVersion": min(max(version, 1), PROTOCOL_VERSION),
        "agentCapabilities": AGENT_CAPABILITIES,
        "agentInfo": {"name": "ollm", "title": "ollm", "version": __version__},
        "authMethods": [],
    }


def read_abilities(capabilities: JsonObject) -> ClientAbilities:
    """What the editor can do for us; nothing where it does not say."""
    files, more = capabilities.get("fs") or {}, capabilities.get("_meta")
    return ClientAbilities(
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        shows_terminals=isinstance(more, dict) and more.get("terminal_output") is True,
    )
