"""The common `mcpServers` format of MCP clients, read into data with every mistake reported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from ollm.domain.errors import UsageError
from ollm.domain.struct import Data, convert_or_describe
from ollm.system.atomic import read_small_file

NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}")
URL_KEYS = ("url", "httpUrl", "serverUrl")  # Other clients use the other names.
SSE = "sse"
TYPES = ("stdio", "http", "streamable-http", "streamableHttp", SSE)
SANDBOX_OFF = (False, "off")
DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_START_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 3600.0
Seconds = Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)]


class McpServer(Data, frozen=True):
    """A program to start (`command`) or an address (`url`). `timeout` limits one call, in seconds, and `start_timeout`
    the start until the handshake. `transport` is the transport set in its entry; without one it is detected.
    `include` and `exclude` are patterns of tool names. `own`: the user wrote or approved it, so its words open
    paths in the sandbox. `boxed` is false for a program that the user's own settings let run outside."""

    name: str
    command: Annotated[str, Meta(pattern=r"\S")] = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: Annotated[str, Meta(pattern=r"^https?://[^/\s]")] = ""
    transport: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    timeout: Seconds = DEFAULT_TIMEOUT_SECONDS
    start_timeout: Seconds = DEFAULT_START_SECONDS
    disabled: bool = False
    boxed: bool = True
    own: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """Return True if a tool of this name is enabled."""
        from fnmatch import fnmatchcase

        wanted = not self.include or any(fnmatchcase(tool, pattern) for pattern in self.include)
        return wanted and not any(fnmatchcase(tool, pattern) for pattern in self.exclude)

    @property
    def place(self) -> str:
        """Address or command in one line for display, without the values of variables and headers."""
        return self.url or " ".join((self.command, *self.args))


EXPECTED = {
    "command": "a program",
    "args": "a list",
    "env": "a mapping of names to values",
    "cwd": "a path",
    "url": "a URL such as http://localhost:8000/mcp",
    "headers": "a mapping of names to values",
    "timeout": f"seconds up to {MAX_TIMEOUT_SECONDS:g}",
    "startTimeout": f"seconds up to {MAX_TIMEOUT_SECONDS:g}",
    "include": "a list of tool names",
    "exclude": "a list of tool names",
}
KEYS = {*EXPECTED, "type", "sandbox", "disabled", "enabled"}


def read_servers(configured: Mapping[str, Any]) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """Read the servers; returns the valid ones and the mistakes in the others."""
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
    """Describe each unknown key in a sentence. The server is used anyway."""
    unknown = sorted(str(key) for key in set(entry) - KEYS - set(URL_KEYS))
    return [f"unknown key {key} is ignored; known: {', '.join(sorted(KEYS))}" for key in unknown]


def read_server(name: str, entry: Any) -> McpServer | str:
    if not NAME_PATTERN.fullmatch(name):
        return "expected a name of at most 32 letters, digits, - and single _"
    if not isinstance(entry, Mapping):
        return "expected a mapping with command or url"
    address = next((entry[key] for key in URL_KEYS if entry.get(key)), None)
    given = {**{key: value for key, value in entry.items() if key not in URL_KEYS}, "url": address}
    given = {key: _make_texts(value) for key, value in given.items() if value is not None}
    own = {
        "name": name,
        "transport": SSE if given.get("type") == SSE else "",  # Older clients write `http` for both transports.
        "disabled": given.get("disabled") is True or given.get("enabled") is False,
        "boxed": given.get("sandbox") not in SANDBOX_OFF,
    }
    found = convert_or_describe({**given, **own}, McpServer, EXPECTED)
    if ("command" in given) == ("url" in given):
        found = "expected either command or url"
    elif isinstance(found, McpServer):
        found = _find_fault(given) or found
    return "; ".join([found, *describe_unknown_keys(entry)]) if isinstance(found, str) else found


def _find_fault(given: Mapping[str, Any]) -> str:
    if given.get("sandbox", True) not in (True, "on", *SANDBOX_OFF):
        return "sandbox: expected off"
    if given.get("type", "stdio") not in TYPES:
        return "type: expected stdio, http or sse"
    return "type: sse needs a url" if given.get("type") == SSE and "url" not in given else ""


def _make_texts(value: Any) -> Any:
    """Make the elements of a list and the values of a mapping text: YAML reads `[8080]` as a number."""
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    return [str(item) for item in value] if isinstance(value, list | tuple) else value


PROJECT_FILE = ".mcp.json"
WORKSPACE_FILES = (
    PROJECT_FILE,
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".claude/settings.json",
)
HOME_FILES = (".claude.json", ".cursor/mcp.json", ".gemini/settings.json", ".codeium/windsurf/mcp_config.json")
RENAMED_KEYS = {"includeTools": "include", "excludeTools": "exclude", "bearer_token_env_var": ""}
APPROVAL_KEYS = {"alwaysAllow", "autoApprove", "trust", "autoApproveTools"}
MAX_FILE_BYTES = 4 * 1024 * 1024


def find_foreign_files(workspace: Path, home: Path) -> list[Path]:
    """Find existing files of other clients, the workspace's first."""
    named = [*(workspace / name for name in WORKSPACE_FILES), *(home / name for name in HOME_FILES)]
    return [file for file in named if file.is_file()]


def read_foreign_file(file: Path, workspace: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the servers in a file as entries of our `mcpServers`, with notes on the parts not imported."""
    servers: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for name, entry in _list_entries(read_foreign_json(file), workspace):
        safe = make_server_name(str(name))
        if safe in servers or not isinstance(entry, Mapping):
            why = "is named twice" if safe in servers else "is no mapping with command or url"
            notes.append(f"{safe} {why} and was left out")
            continue
        servers[safe], left = convert_entry(entry)
        notes += [f"{safe}: {sentence}" for sentence in left]
    return servers, notes


def read_foreign_json(file: Path) -> Any:
    """Read a settings file of another client, with the comments and trailing commas that some of them allow."""
    try:
        text = read_small_file(file, MAX_FILE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    for candidate in (text, re.sub(r"^\s*//.*$|,(?=\s*[}\]])", "", text, flags=re.MULTILINE)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise UsageError(f"{file} cannot be read: it is not JSON.")


def _list_entries(document: Any, workspace: Path) -> Iterator[tuple[str, Any]]:
    """Yield entries from every place clients use. Claude Code's project entries count only for this workspace."""
    if not isinstance(document, Mapping):
        return
    projects = document.get("projects")
    project = projects.get(str(workspace)) if isinstance(projects, Mapping) else None
    inner = document.get("mcp")
    for holder, key in ((document, "mcpServers"), (document, "servers"), (inner, "servers"), (project, "mcpServers")):
        found = holder.get(key) if isinstance(holder, Mapping) else None
        yield from found.items() if isinstance(found, Mapping) else ()


def make_server_name(name: str) -> str:
    if NAME_PATTERN.fullmatch(name):
        return name
    plain = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9-]", "_", name)).strip("_-")[:32].rstrip("_")
    return plain if NAME_PATTERN.fullmatch(plain) else "server"


def convert_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert one server to our format, with a sentence for each setting without an equivalent."""
    found: dict[str, Any] = {}
    left: list[str] = []
    for key, value in entry.items():
        known = RENAMED_KEYS.get(key, key)
        if key in APPROVAL_KEYS:
            left.append(f"{key} was not taken over: your own rules decide what runs unasked (`ollm policy show`)")
        elif known in KEYS or key in URL_KEYS:
            found[known] = _convert_value(known, value)
        else:
            left.append(f"{key} has no meaning here and was left out")
    if "${input:" in json.dumps(found, default=str):
        left.append("it asks for an input: put it into an environment variable and write ${NAME}")
    return found, left


def _convert_value(key: str, value: Any) -> Any:
    """Convert millisecond time limits to seconds, and variables to our notation."""
    if key == "timeout" and isinstance(value, int | float) and value >= 1000:
        return min(value / 1000, MAX_TIMEOUT_SECONDS)
    if isinstance(value, str):
        return re.sub(r"\$\{env:([A-Za-z_]\w*)\}", r"${\1}", value).replace("${workspaceFolder}", ".")
    if isinstance(value, list):
        return [_convert_value("", item) for item in value]
    return {name: _convert_value("", item) for name, item in value.items()} if isinstance(value, Mapping) else value


def read_project_servers(workspace: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the workspace's `.mcp.json`. An unreadable file is reported and provides nothing."""
    file = workspace / PROJECT_FILE
    try:
        return read_foreign_file(file, workspace) if file.is_file() else ({}, [])
    except UsageError as error:
        return {}, [str(error)]
