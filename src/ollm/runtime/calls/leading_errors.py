"""Calls in near names: those whose meaning is plain are taken as they are meant, a failed one is told the call that was
probably meant, written out."""

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


def find_meant_tool(name: str, arguments: Any, known: Iterable[str]) -> str:
    """The tool that another spelling of its name means (`ReadFile`, `read-file`), or a shell by its usual names; empty
    where a person would have to guess."""
    names = list(known)
    if name.lower() in SHELL_NAMES and isinstance(arguments, dict) and "command" in arguments and "shell" in names:
        return "shell"
    alike = [tool for tool in names if _fold(tool) == _fold(name)]
    return alike[0] if len(alike) == 1 else ""


def rename_parameters(message: str, arguments: Any) -> dict[str, Any]:
    """The arguments with the names that a failed check suggests for unknown ones; empty where a
    suggested name is already given, or nothing was suggested."""
    renamed: dict[str, str] = dict(_UNKNOWN.findall(message))
    if not isinstance(arguments, dict) or not renamed or any(name in arguments for name in renamed.values()):
        return {}
    return {renamed.get(str(key), str(key)): value for key, value in arguments.items()}


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def suggest_call(kind: str, message: str, tool: str, arguments: Any, near: Sequence[str], workspace: Path) -> str:
    """One sentence with the call that does it right; empty where none is plain."""
    if not isinstance(arguments, dict):
        return ""
    if kind == "UnknownTool":
        wanted = "shell" if tool.lower() in SHELL_NAMES and "command" in arguments else near[0] if near else ""
        return _write_call(wanted, arguments) if wanted else ""
    if kind == "ValidationError":
        renamed: dict[str, str] = dict(_UNKNOWN.findall(message))
        named = {renamed.get(str(key), str(key)): value for key, value in arguments.items()} if renamed else {}
        right = _keep_one(message, arguments) or named
        return _write_call(tool, right) if right else ""
    path = arguments.get("path")
    if kind != "FileNotFound" or not isinstance(path, str) or tool not in ("read_file", "edit_file", "outline"):
        return ""
    if _GLOB.search(path):
        return _write_call("glob", {"pattern": path})
    found = find_near_file(path, workspace)
    return _write_call(tool, {**arguments, "path": found}, f"Did you mean {found}? ") if found else ""


def _keep_one(message: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the first of those that exclude each other; empty where the failure was another."""
    told = _EXCLUSIVE.search(message)
    rivals = [name for name in dict.fromkeys(re.findall(r"\w+", told[1])) if name in arguments] if told else []
    return {name: value for name, value in arguments.items() if name not in rivals[1:]} if len(rivals) > 1 else {}


def find_near_file(path: str, workspace: Path) -> str:
    """The only file of that name elsewhere, or the one whose path is most like it; hidden ones are left out."""
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
