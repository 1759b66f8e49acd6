"""Correct tool calls with slightly wrong names, and suggest a complete call after one that failed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

MAX_LISTED_FILES = 2_000
MAX_CALL_CHARS = 400
SHELL_NAMES = frozenset(
    {"bash", "sh", "run", "terminal", "execute", "run_command", "run_shell_command", "execute_command"}
)
_UNKNOWN = re.compile(r'^- (\w+): no such parameter; did you mean "(\w+)"\?$', re.MULTILINE)
_EXCLUSIVE = re.compile(r"(?:exactly one of|give either) ([^;.\n]+)")
_GLOB = re.compile(r"[*?\[]")


def resolve_tool_name(name: str, arguments: Any, known: Iterable[str]) -> str:
    """Find the tool for another spelling (`ReadFile`, `read-file`) or a common shell name; "" if ambiguous."""
    names = list(known)
    if name.lower() in SHELL_NAMES and isinstance(arguments, dict) and "command" in arguments and "shell" in names:
        return "shell"
    alike = [tool for tool in names if _fold(tool) == _fold(name)]
    return alike[0] if len(alike) == 1 else ""


def rename_parameters(message: str, arguments: Any, *, replace: bool = False) -> dict[str, Any]:
    """Rename unknown parameters as the validation error suggests. Return {} if it suggests nothing.

    Also return {} if the new name is already in use, unless `replace` is set.
    """
    new_names: dict[str, str] = dict(_UNKNOWN.findall(message))
    if not isinstance(arguments, dict) or not new_names:
        return {}
    if not replace and any(name in arguments for name in new_names.values()):
        return {}
    return {new_names.get(str(key), str(key)): value for key, value in arguments.items()}


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def suggest_call(kind: str, message: str, tool: str, arguments: Any, near: Sequence[str], workspace: Path) -> str:
    """Write a sentence with the corrected call, or "" if no correction is clear."""
    if not isinstance(arguments, dict):
        return ""
    if kind == "UnknownTool":
        wanted = "shell" if tool.lower() in SHELL_NAMES and "command" in arguments else near[0] if near else ""
        return _write_call(wanted, arguments) if wanted else ""
    if kind == "ValidationError":
        corrected = _drop_conflicting(message, arguments) or rename_parameters(message, arguments, replace=True)
        return _write_call(tool, corrected) if corrected else ""
    path = arguments.get("path")
    if kind != "FileNotFound" or not isinstance(path, str) or tool not in ("read_file", "edit_file", "outline"):
        return ""
    if _GLOB.search(path):
        return _write_call("glob", {"pattern": path})
    found = find_near_file(path, workspace)
    return _write_call(tool, {**arguments, "path": found}, f"Did you mean {found}? ") if found else ""


def _drop_conflicting(message: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Keep only the first of the mutually exclusive arguments. Return {} after any other failure."""
    match = _EXCLUSIVE.search(message)
    rivals = [name for name in dict.fromkeys(re.findall(r"\w+", match[1])) if name in arguments] if match else []
    return {name: value for name, value in arguments.items() if name not in rivals[1:]} if len(rivals) > 1 else {}


def find_near_file(path: str, workspace: Path) -> str:
    """Find the only file with that name elsewhere, or the most similar path; "" if the workspace is too large."""
    from ollm.domain.text import suggest_names

    names: list[str] = []
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        place = Path(folder).relative_to(workspace)
        names += [(place / name).as_posix() for name in files if not name.startswith(".")]
        if len(names) > MAX_LISTED_FILES:
            return ""
    same = [name for name in names if Path(name).name == Path(path).name]
    alike = [name for name in names if suggest_names(Path(path).stem, [Path(name).stem])]
    near = same if len(same) == 1 else suggest_names(path, alike)
    return near[0] if near else ""


def _write_call(tool: str, arguments: dict[str, Any], words: str = "") -> str:
    written = json.dumps(arguments, ensure_ascii=False)
    return f"{words}Call {tool} {written}" if len(written) <= MAX_CALL_CHARS else words.strip()
