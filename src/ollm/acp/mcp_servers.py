"""MCP servers as an editor sends them, in the form of our settings."""

from __future__ import annotations

import re
from typing import Any

from ollm.domain.messages import JsonObject
from ollm.system.terminal_text import make_printable

MAX_NAME_CHARS = 32
FAULT = "ollmFault"
TYPES = ("stdio", "http", "sse")


def complete_servers(sent: list[Any]) -> list[JsonObject]:
    """Entries as the protocol's library takes them, which leaves out others without a word. What is wrong with one
    that cannot be used goes along with it."""
    return [complete_server(entry if isinstance(entry, dict) else {}) for entry in sent]


def complete_server(entry: JsonObject) -> JsonObject:
    fault = find_fault(entry)
    name = str(entry.get("name") or "server")
    if fault:
        return {"name": name, "command": "", "args": [], "env": [], "_meta": {FAULT: fault}}
    known = {**entry, "name": name, "_meta": None}
    if "url" not in entry:
        return {**known, "args": entry.get("args") or [], "env": entry.get("env") or []}
    return {**known, "type": entry.get("type") or "http", "headers": entry.get("headers") or []}


def find_fault(entry: JsonObject) -> str:
    """Why a server cannot be used; empty when it can."""
    kind = entry.get("type") or ("http" if "url" in entry else "stdio")
    if kind not in TYPES:
        return f"servers of type {make_printable(str(kind)[:40])} are not supported, only stdio, http and sse"
    place, pairs = ("command", "env") if kind == "stdio" else ("url", "headers")
    if not isinstance(entry.get(place), str) or not entry[place].strip():
        return f"it has no {place}"
    if not all(isinstance(one, str) for one in as_list(entry.get("args"))):
        return "args is not a list of texts"
    if not all(is_pair(one) for one in as_list(entry.get(pairs))):
        return f"{pairs} is not a list of names and values"
    return ""


def as_list(value: Any) -> list[Any]:
    """A list as it is, nothing as an empty one, anything else as one that holds nothing of use."""
    return value if isinstance(value, list) else [] if value is None else [None]


def is_pair(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("value"), str)


def find_server_fault(server: JsonObject) -> str:
    more = server.get("_meta")
    return str(more.get(FAULT) or "") if isinstance(more, dict) else ""


def describe_unusable(sent: list[JsonObject]) -> tuple[str, ...]:
    """What is said of the servers that cannot be used."""
    return tuple(
        f"The MCP server {make_printable(str(server['name'])[:80])} cannot be used: {fault}."
        for server in sent
        if (fault := find_server_fault(server))
    )


def read_servers(sent: list[JsonObject]) -> dict[str, Any]:
    """Entries by name; of two with one name the first counts. Those that cannot be used are left out."""
    found: dict[str, Any] = {}
    for server in sent:
        if not find_server_fault(server):
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
