"""Definitions in the stretches of a file that do not parse, found by patterns and put among the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.services.code_map.definition import CodeDefinition
from ollm.services.code_map.patterns import find_definitions

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STRETCHES = 200


def add_lost_definitions(found: list[CodeDefinition], root: Node, name: str, data: bytes) -> list[CodeDefinition]:
    """With what patterns find in the stretches that do not parse: one open bracket can swallow the rest of a file."""
    rows = {row for first, last in _find_error_rows(root) for row in range(first, last + 1)}
    known = {definition.line for definition in found}
    lost = [
        definition
        for definition in find_definitions(name, data.decode("utf-8", "replace"))
        if definition.line - 1 in rows and definition.line not in known and definition.kind != "block"
    ]
    return sorted([*found, *lost], key=lambda definition: definition.line) if lost else found


def _find_error_rows(root: Node) -> list[tuple[int, int]]:
    """The first and last row of each stretch that does not parse."""
    waiting, rows = [root], list[tuple[int, int]]()
    while waiting and len(rows) < MAX_STRETCHES:
        node = waiting.pop()
        if node.is_error or any(child.is_missing for child in node.children):
            rows.append((node.start_point[0], node.end_point[0]))
        else:
            waiting += [child for child in node.children if child.has_error]
    return rows
