"""Correct tool calls with slightly wrong names, and suggest the file that a failed call meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ollm.domain.text import suggest_names

MAX_LISTED_FILES = 2_000
SHELL_NAMES = frozenset(
    {"bash", "sh", "run", "terminal", "execute", "run_command", "run_shell_command", "execute_command"}
)
_UNKNOWN = re.compile(r'^- (\w+): no such parameter; did you mean "(\w+)"\?$', re.MULTILINE)


def resolve_tool_name(name: str, arguments: Any, known: Iterable[str]) -> str:
    """Find the tool for another spelling (`ReadFile`, `read-file`) or a common shell name; "" if ambiguous."""
    names = list(known)
    if name.lower() in SHELL_NAMES and isinstance(arguments, dict) and "command" in arguments and "shell" in names:
        return "shell"
    alike = [tool for tool in names if _fold(tool) == _fold(name)]
    return alike[0] if len(alike) == 1 else ""


def rename_parameters(message: str, arguments: Any) -> dict[str, Any]:
    """Rename unknown parameters as the validation error suggests. Return {} if it suggests nothing, or a name that is
    already in use."""
    new_names: dict[str, str] = dict(_UNKNOWN.findall(message))
    if not isinstance(arguments, dict) or not new_names or any(name in arguments for name in new_names.values()):
        return {}
    return {new_names.get(str(key), str(key)): value for key, value in arguments.items()}


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def find_near_file(path: str, workspace: Path) -> str:
    """Find the only file with that name elsewhere, or the most similar path; "" if the workspace is too large."""
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
