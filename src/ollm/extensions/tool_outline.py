"""What the tools of an extension say of themselves, read from its source without running any of it."""

from __future__ import annotations

import ast
from pathlib import Path

from ollm.extensions.manifest import Manifest

MAX_SOURCE_BYTES = 1024 * 1024


def describe_tools(folder: Path, manifest: Manifest) -> list[str]:
    """A line for each tool it adds: the name the model calls, and what it may do."""
    lines = []
    for addition in manifest.adds:
        if addition.kind == "tools":
            module, _, attribute = addition.target.partition(":")
            lines.append(_describe_tool(folder / f"{module.replace('.', '/')}.py", attribute, addition.name))
    return lines


def _describe_tool(file: Path, attribute: str, listed: str) -> str:
    found = _find_class(file, attribute)
    if found is None:
        return f"  {listed}: which tools these are is known when it runs; each asks before it runs"
    facts = _read_constants(found)
    name = facts.get("name") if isinstance(facts.get("name"), str) else listed
    may = "says that it only reads" if facts.get("reads_only") is True else "may change things"
    told = " ".join((ast.get_docstring(found) or "").split("\n")[0].split())
    return f"  tool {name}: {told} It {may}, and asks before it runs unless a rule allows it."


def _find_class(file: Path, attribute: str) -> ast.ClassDef | None:
    try:
        tree = ast.parse(file.read_bytes()[:MAX_SOURCE_BYTES])
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == attribute), None)


def _read_constants(node: ast.ClassDef) -> dict[str, object]:
    found: dict[str, object] = {}
    for statement in node.body:
        target: ast.expr | None = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        value = getattr(statement, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            found[target.id] = value.value
    return found
