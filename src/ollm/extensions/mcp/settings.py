"""`mcpServers` as people write it for every client, read into data with every mistake told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import field

from ollm.domain.struct import Data

NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}")
VARIABLE_PATTERN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
KEYS = {
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "type",
    "timeout",
    "startTimeout",
    "disabled",
    "enabled",
    "include",
    "exclude",
    "sandbox",
}
URL_KEYS = ("url", "httpUrl", "serverUrl")  # as other clients name it
SSE = "sse"
TYPES = {None, "stdio", "http", "streamable-http", "streamableHttp", SSE}
SANDBOX_OFF = (False, "off")
DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_START_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 3600.0


class McpServer(Data, frozen=True):
    """A program to start (`command`) or an address (`url`). `timeout` is what one call may take, in seconds, and
    `start_timeout` what it may take until it says hello. `transport` is how its entry says an
    address is spoken to; otherwise that is found out. `include` and `exclude` are patterns of tool names.
    `boxed` is false for a program that the user's own file lets run outside the sandbox."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    transport: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    start_timeout: float = DEFAULT_START_SECONDS
    disabled: bool = False
    boxed: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """Whether a tool of this name is wanted."""
        from fnmatch import fnmatchcase

        wanted = not self.include or any(fnmatchcase(tool, pattern) for pattern in self.include)
        return wanted and not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    @property
    def place(self) -> str:
        """Where it is, in a line for people; the values of variables and headers are left out."""
        return self.url or " ".join((self.command, *self.args))


def read_servers(configured: Mapping[str, Any]) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """The servers that can be read, and what is wrong with the others."""
    servers: list[McpServer] = []
    problems: list[str] = []
    for name, entry in configured.items():
        found = read_server(name, entry)
        if isinstance(found, McpServer):
            servers.append(found)
            problems += [f"mcpServers.{name}: {sentence}" for sentence in describe_unknown_keys(entry)]
        else:
            problems.append(f"mcpServers.{name}: {found}")
    return tuple(servers), tuple(problems)


def describe_unknown_keys(entry: Mapping[str, Any]) -> list[str]:
    """A sentence for each key that means nothing here; the server is used all the same."""
    unknown = sorted(str(key) for key in set(entry) - KEYS - set(URL_KEYS))
    return [f"unknown key {key} is ignored; known: {', '.join(sorted(KEYS))}" for key in unknown]


def read_server(name: str, entry: Any) -> McpServer | str:
    if not NAME_PATTERN.fullmatch(name):
        return "expected a name of at most 32 letters, digits, - and single _"
    if not isinstance(entry, Mapping):
        return "expected a mapping with command or url"
    address = next((entry[key] for key in URL_KEYS if entry.get(key)), None)
    entry = {**{key: value for key, value in entry.items() if key not in URL_KEYS}, "url": address}
    if fault := _find_fault(entry):
        unknown = sorted(str(key) for key in set(entry) - KEYS)
        return f"{fault} (unknown key {unknown[0]}; known: {', '.join(sorted(KEYS))})" if unknown else fault
    return McpServer(
        name=name,
        command=entry.get("command") or "",
        args=tuple(str(argument) for argument in entry.get("args") or ()),
        env={key: str(value) for key, value in (entry.get("env") or {}).items()},
        cwd=entry.get("cwd") or "",
        url=entry.get("url") or "",
        transport=_read_transport(entry) if entry.get("url") else "",
        headers={key: str(value) for key, value in (entry.get("headers") or {}).items()},
        timeout=float(entry.get("timeout", DEFAULT_TIMEOUT_SECONDS)),
        start_timeout=float(entry.get("startTimeout", DEFAULT_START_SECONDS)),
        disabled=entry.get("disabled") is True or entry.get("enabled") is False,
        boxed=entry.get("sandbox") not in SANDBOX_OFF,
        include=_read_patterns(entry, "include"),
        exclude=_read_patterns(entry, "exclude"),
    )


def _find_fault(entry: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one line a rule
    command, url = entry.get("command"), entry.get("url")
    if (command is None) == (url is None):
        return "expected either command or url"
    if command is not None and not (isinstance(command, str) and command.strip()):
        return "command: expected a program"
    if url is not None and not (isinstance(url, str) and re.match(r"https?://[^/\s]", url)):
        return "url: expected a URL such as http://localhost:8000/mcp"
    if entry.get("sandbox") not in (None, True, "on", *SANDBOX_OFF):
        return "sandbox: expected off"
    if entry.get("type") not in TYPES:
        return "type: expected stdio, http or sse"
    if entry.get("type") == SSE and url is None:
        return "type: sse needs a url"
    if not isinstance(entry.get("args") or [], list | tuple):
        return "args: expected a list"
    if not isinstance(entry.get("cwd") or "", str):
        return "cwd: expected a path"
    for key in ("env", "headers"):
        if not isinstance(entry.get(key) or {}, Mapping):
            return f"{key}: expected a mapping of names to values"
    return _find_limit_fault(entry)


def _read_transport(entry: Mapping[str, Any]) -> str:
    """An older client writes `http` for both ways, so only `sse` is taken at its word."""
    return SSE if entry.get("type") == SSE else ""


def _find_limit_fault(entry: Mapping[str, Any]) -> str:
    for key in ("timeout", "startTimeout"):
        seconds = entry.get(key, 1)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= MAX_TIMEOUT_SECONDS:
            return f"{key}: expected seconds up to {MAX_TIMEOUT_SECONDS:g}"
    for key in ("include", "exclude"):
        if not isinstance(entry.get(key) or [], list | tuple):
            return f"{key}: expected a list of tool names"
    return ""


def _read_patterns(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(pattern) for pattern in entry.get(key) or ())


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """`${NAME}` and `${NAME:-otherwise}` replaced by what the variable holds; an unknown one is left as it is."""
    return VARIABLE_PATTERN.sub(lambda found: variables.get(found[1], found[0] if found[2] is None else found[2]), text)
