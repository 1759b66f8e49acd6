"""MCP servers as other clients keep them: Claude Code, Cursor, VS Code and Gemini; read, and put into our words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ollm.domain.errors import UsageError
from ollm.extensions.mcp.settings import KEYS, MAX_TIMEOUT_SECONDS, NAME_PATTERN, URL_KEYS
from ollm.system.small_files import read_small_file

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
    """The files of other clients that are there, the workspace's first."""
    named = [*(workspace / name for name in WORKSPACE_FILES), *(home / name for name in HOME_FILES)]
    return [file for file in named if file.is_file()]


def read_foreign_file(file: Path, workspace: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The servers in a file, each as an entry of our `mcpServers`, and what was not taken over."""
    servers: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for name, entry in _list_entries(_read_json(file), workspace):
        safe = make_server_name(str(name))
        if safe in servers or not isinstance(entry, Mapping):
            why = "is named twice" if safe in servers else "is no mapping with command or url"
            notes.append(f"{safe} {why} and was left out")
            continue
        servers[safe], left = convert_entry(entry)
        notes += [f"{safe}: {sentence}" for sentence in left]
    return servers, notes


def _read_json(file: Path) -> Any:
    try:
        text = read_small_file(file, MAX_FILE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    for candidate in (text, re.sub(r"^\s*//.*$|,(?=\s*[}\]])", "", text, flags=re.MULTILINE)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise UsageError(f"{file} is not JSON.")


def _list_entries(document: Any, workspace: Path) -> Iterator[tuple[str, Any]]:
    """Wherever a client puts them; what Claude Code keeps for a project counts only for that one."""
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
    """One server in our words, and a sentence for each thing that has no word here."""
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
    """Time limits in milliseconds as seconds; variables in our notation."""
    if key == "timeout" and isinstance(value, int | float) and value >= 1000:
        return min(value / 1000, MAX_TIMEOUT_SECONDS)
    if isinstance(value, str):
        return re.sub(r"\$\{env:([A-Za-z_]\w*)\}", r"${\1}", value).replace("${workspaceFolder}", ".")
    if isinstance(value, list):
        return [_convert_value("", item) for item in value]
    return {name: _convert_value("", item) for name, item in value.items()} if isinstance(value, Mapping) else value


def read_project_servers(workspace: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the workspace's `.mcp.json` says; a file that cannot be read is told and brings nothing."""
    file = workspace / PROJECT_FILE
    try:
        return read_foreign_file(file, workspace) if file.is_file() else ({}, [])
    except UsageError as error:
        return {}, [str(error)]
