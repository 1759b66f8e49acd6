"""MCP servers as an editor sends them, in the form of our settings."""

from __future__ import annotations

import re
from typing import Any

from ollm.domain.messages import JsonObject

MAX_NAME_CHARS = 32


def read_servers(sent: list[JsonObject]) -> dict[str, Any]:
    """Entries by name; of two with one name the first counts."""
    found: dict[str, Any] = {}
    for server in sent:
        found.setdefault(make_name(str(server.get("name", ""))), read_server(server))
    return found


def read_server(server: JsonObject) -> JsonObject:
    if "url" in server:
        headers = {str(one["name"]): str(one["value"]) for one in server.get("headers", [])}
        return {"type": server.get("type", "http"), "url": server["url"], "headers": headers}
    variables = {str(one["name"]): str(one["value"]) for one in server.get("env", [])}
    return {"command": server.get("command", ""), "args": server.get("args", []), "env": variables}


def make_name(name: str) -> str:
    """A name that tools can begin with: letters, digits and dashes."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:MAX_NAME_CHARS].rstrip("-")
    return plain or "server"
