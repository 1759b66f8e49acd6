"""Conditions compared with the parameters of a call that is no shell command (T7.6).

A rule that restricts is compared generously (the text as given or the path it means), a rule that allows strictly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ollm.domain.errors import ToolFailure
from ollm.policy.rules import Condition, Rule, compile_pattern
from ollm.system.paths import Boundary, resolve_path

PATH_PARAMETERS = frozenset({"path", "paths", "cwd", "file", "directory"})


def rule_matches(rule: Rule, params: Mapping[str, Any], boundary: Boundary) -> bool:
    """True if every condition of the rule holds for these parameters."""
    allows = rule.action == "allow"
    return all(condition_matches(condition, params, boundary, allows=allows) for condition in rule.conditions)


def condition_matches(condition: Condition, params: Mapping[str, Any], boundary: Boundary, *, allows: bool) -> bool:
    if condition.param not in params:
        return False
    value = params[condition.param]
    items = value if isinstance(value, (list, tuple)) else [value]
    if not items:
        return False
    every = all if allows else any
    return every(_item_matches(condition, item, boundary, allows=allows) for item in items)


def _item_matches(condition: Condition, item: Any, boundary: Boundary, *, allows: bool) -> bool:
    if condition.operator == "under":
        return isinstance(item, str) and any(
            is_under(item, value, boundary, allows=allows) for value in condition.values
        )
    forms = _list_path_forms(condition.param, item, boundary, allows=allows)
    return any(_compare(condition.operator, form, value) for form in forms for value in condition.values)


def _list_path_forms(param: str, item: Any, boundary: Boundary, *, allows: bool) -> list[Any]:
    """A path counts without `.` and `..`, from the workspace and from the root; to restrict, as it was given too."""
    if param not in PATH_PARAMETERS or not isinstance(item, str):
        return [item]
    plain = os.path.normpath(boundary.workspace / item)
    relative = os.path.relpath(plain, boundary.workspace)
    return [relative, plain] if allows else [item, relative, plain]


def _compare(operator: str, item: Any, value: Any) -> bool:
    if operator == "equals":
        return bool(item == value) or (not isinstance(item, str) and _format_value(item) == str(value))
    if not isinstance(item, str):
        return False
    if operator == "contains":
        return value in item
    if operator == "startsWith":
        return item.startswith(value)
    if operator == "matches":
        return compile_pattern(value).search(item) is not None
    return operator == "program" and item == value


def _format_value(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)


def is_under(item: str, directory: str, boundary: Boundary, *, allows: bool, base: Path | None = None) -> bool:
    """A path inside a directory, or the directory itself, compared by components after following links. To allow,
    both the path as written and where it leads must be inside; to restrict, one of them is enough."""
    start = base or boundary.workspace
    home = boundary.places.user_home
    if home is not None and (directory == "~" or directory.startswith("~/")):
        directory = str(home / directory[2:])
    written = Path(os.path.normpath(start / item)), Path(os.path.normpath(boundary.workspace / directory))
    try:
        real = resolve_path(item, start), resolve_path(directory, boundary.workspace)
    except ToolFailure:
        return False
    inside = [path.is_relative_to(above) for path, above in (written, real)]
    return all(inside) or (not allows and any(inside)) or (allows and inside[1] and written[0] == real[0])
