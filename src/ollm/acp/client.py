"""The editor as this side sees it: its abilities, its unsaved files and the MCP servers it brings."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ollm.domain.errors import OllmError, ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.system.terminal_text import make_printable


class ClientGoneError(OllmError):
    """There is no editor any more that could answer."""


class ClientRefusedError(OllmError):
    """The editor answered with an error."""


class ClientAbilities(Data, frozen=True):
    """Abilities an editor offers. `shows_terminals`: it draws the output of our commands as a terminal."""

    reads_files: bool = False
    writes_files: bool = False
    shows_terminals: bool = False


class Editor(Protocol):
    """The other end. Updates are the protocol's JSON."""

    async def send_update(self, session_id: str, update: JsonObject) -> None: ...

    async def ask_permission(self, session_id: str, call: JsonObject, options: list[JsonObject]) -> str | None: ...

    async def read_text_file(self, session_id: str, path: str) -> str: ...

    async def write_text_file(self, session_id: str, path: str, text: str) -> None: ...


log = logging.getLogger("ollm.acp")
READ_TIMEOUT_SECONDS = 5.0
WRITE_TIMEOUT_SECONDS = 15.0
QUIET_SECONDS = 60.0  # how long an editor that did not answer is not asked for other files


class EditorBuffers:
    """Unsaved buffers of one session. If the editor does not have a file, or does not answer in time, the file on disk
    counts; a timeout is reported."""

    def __init__(self, editor: Editor, abilities: ClientAbilities) -> None:
        self._editor = editor
        self._abilities = abilities
        self.session_id = ""  # known when the session is open
        self.report: Callable[[str], None] = log.warning
        self._given: set[Path] = set()  # what the editor holds: the disk may have another text
        self._unread: set[Path] = set()  # what it was not asked for, or did not answer about
        self._plain_ends: set[Path] = set()  # what it gives with plain line ends, whatever they are on disk
        self._quiet_until = 0.0

    @property
    def writes(self) -> bool:
        return self._abilities.writes_files

    def withholds(self, path: Path) -> bool:
        return path in self._given and path in self._unread

    async def read(self, path: Path) -> str | None:
        if not self._abilities.reads_files:
            return None
        self._unread.add(path)
        if time.monotonic() < self._quiet_until:
            return None
        text = None
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                text = await self._editor.read_text_file(self.session_id, str(path))
                self._given.add(path)
                self._note_line_ends(path, text)
        except TimeoutError:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            self.report(
                f"The editor did not give {path.name} within {READ_TIMEOUT_SECONDS:g} s: for a minute, files are read"
                " and written as they are on disk."
            )
            return None
        except OllmError as error:
            log.debug("The editor did not give a file: %s", error, extra={"operation": "read"})
        self._unread.discard(path)
        return text

    async def write(self, path: Path, text: str) -> bool:
        if not self._abilities.writes_files:
            return False
        if path in self._unread:  # the editor would lose what it has: let it find the file changed on disk
            return self._refuse_write(path, "it does not answer")
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                await self._write_with_its_ends(path, text)
        except TimeoutError:
            return self._refuse_write(path, f"no answer within {WRITE_TIMEOUT_SECONDS:g} s")
        except OllmError as error:
            return self._refuse_write(path, str(error))
        return True

    def _note_line_ends(self, path: Path, text: str) -> None:
        if "\r" in text:
            self._plain_ends.discard(path)
        elif "\n" in text:
            self._plain_ends.add(path)

    async def _write_with_its_ends(self, path: Path, text: str) -> None:
        """An editor that gives plain line ends is given plain ones, and saves those of the file; one that saves what it
        is given is given those of the file."""
        plain = text.replace("\r\n", "\n") if path in self._plain_ends else text
        ended = plain != text and has_line_ends(path)
        await self._editor.write_text_file(self.session_id, str(path), plain)
        if ended and not has_line_ends(path):
            await self._editor.write_text_file(self.session_id, str(path), text)

    def _refuse_write(self, path: Path, why: str) -> bool:
        """Raise ToolFailure for files the editor holds; all others are written on disk."""
        log.warning("The editor did not write a file: %s", why, extra={"operation": "write"})
        if path in self._given:
            raise ToolFailure("PermissionDenied", f"The editor did not write {path.name}: {why}")
        self.report(f"The editor did not write {path.name} ({why}): it is written on disk.")
        return False


def has_line_ends(path: Path) -> bool:
    """True if a file on disk has line ends of two characters."""
    try:
        return b"\r\n" in path.read_bytes()
    except OSError:
        return False


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
    """Describe the servers that cannot be used."""
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
