"""Programs of small models that write the lines of a file as a JSON list, and leave the line breaks in it. Pure.

Only a list that goes into JSON as it was read is mended, and only where nothing else uses it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

_KEPT_BREAKS = re.compile(r"\b(?:line\s*(?:breaks?|endings?|feeds?)|new\s*lines?|notebook|ipynb)\b|\\n", re.IGNORECASE)
_COMMAND_CODE = re.compile(r"(?P<head>\bpython3?\s+-c\s+)(?P<code>\"(?:[^\"\\]|\\.)*\"|'[^']*')")


class _Uses(NamedTuple):
    """What a program does with its names."""

    values: dict[str, list[ast.expr]]  # assigned to each
    loads: dict[str, int]
    files: set[str]  # names of files that were opened
    loops: list[ast.For]


def mend_lists(code: str, request: str = "") -> str:
    """The program with its lists of lines without line breaks; as it is where it does not parse."""
    if "json" not in code or _KEPT_BREAKS.search(request):
        return code
    text = code.encode()
    for start, end, new in sorted(set(_find_mends(code)), reverse=True):
        text = text[:start] + new.encode() + text[end:]
    return text.decode()


def mend_listing_command(command: str, request: str = "") -> str:
    """The same for the program of `python -c`."""

    def write(found: re.Match[str]) -> str:
        quote, text = found["code"][0], found["code"][1:-1]
        plain = text.replace(r"\"", '"') if quote == '"' else text
        mended = mend_lists(plain, request)
        if mended == plain:
            return found[0]
        return found["head"] + quote + (mended.replace('"', r"\"") if quote == '"' else mended) + quote

    return _COMMAND_CODE.sub(write, command)


def _find_mends(code: str) -> Iterator[tuple[int, int, str]]:
    """Which bytes of the program become what."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    uses = _read_uses(tree)
    starts = [0, *accumulate(len(line.encode()) for line in code.splitlines(keepends=True))]
    for node in ast.walk(tree):
        lines = _find_read(node.args[0], uses) if isinstance(node, ast.Call) and _is_json(node) else None
        if lines is not None and lines.end_lineno is not None and lines.end_col_offset is not None:
            end = starts[lines.end_lineno - 1] + lines.end_col_offset
            yield starts[lines.lineno - 1] + lines.col_offset, end, _write_mend(code, lines)


def _is_json(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("json.dump", "json.dumps", "dump", "dumps") and bool(call.args)


def _read_uses(tree: ast.Module) -> _Uses:
    uses = _Uses({}, {}, set(), [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            uses.values.setdefault(node.targets[0].id, []).append(node.value)
        if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name) and _opens(node.context_expr):
            uses.files.add(node.optional_vars.id)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            uses.loads[node.id] = uses.loads.get(node.id, 0) + 1
        if isinstance(node, ast.For):
            uses.loops.append(node)
    uses.files.update(name for name, values in uses.values.items() if all(map(_opens, values)))
    return uses


def _opens(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return (isinstance(called, ast.Name) and called.id == "open") or (
        isinstance(called, ast.Attribute) and called.attr == "open"
    )


def _find_read(value: ast.expr, uses: _Uses) -> ast.expr | None:
    """Where the lines of this value are read, which have their line breaks."""
    if isinstance(value, ast.Name):
        values = uses.values.get(value.id, [])
        if len(values) != 1 or isinstance(values[0], ast.Name):
            return None
        if uses.loads.get(value.id) == 1:
            return _find_read(values[0], uses)
        return _find_filled(value.id, values[0], uses)
    if isinstance(value, ast.ListComp) and len(value.generators) == 1:
        made = value.generators[0]
        same = isinstance(value.elt, ast.Name) and ast.unparse(made.target) == value.elt.id and not made.ifs
        return _find_lines(made.iter, uses) if same else None
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "list" and len(value.args) == 1:
        return _find_lines(value.args[0], uses)
    return value if _reads_lines(value) else None


def _find_filled(name: str, value: ast.expr, uses: _Uses) -> ast.expr | None:
    """Where the lines are read that a loop puts into this list one by one."""
    if uses.loads.get(name) != 2 or not isinstance(value, ast.List) or value.elts:
        return None
    filling = (loop for loop in uses.loops if len(loop.body) == 1)
    for loop in filling:
        if ast.unparse(loop.body[0]) == f"{name}.append({ast.unparse(loop.target)})":
            return _find_lines(loop.iter, uses)
    return None


def _find_lines(read: ast.expr, uses: _Uses) -> ast.expr | None:
    file = _opens(read) or (isinstance(read, ast.Name) and read.id in uses.files)
    return read if file or _reads_lines(read) else None


def _reads_lines(value: ast.expr) -> bool:
    """`FILE.readlines()`, or `FILE.read().split("\\n")`, which has an empty line at its end."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr == "readlines":
        return not value.args
    text = value.func.value
    split = value.func.attr == "split" and [*map(ast.unparse, value.args)] == ["'\\n'"]
    read = ast.unparse(text.func) if isinstance(text, ast.Call) else ""
    return split and read.endswith((".read", ".read_text"))


def _write_mend(code: str, lines: ast.expr) -> str:
    if not _reads_lines(lines) or not isinstance(lines, ast.Call) or not isinstance(lines.func, ast.Attribute):
        return f"{ast.get_source_segment(code, lines)}.read().splitlines()"
    text = ast.get_source_segment(code, lines.func.value)
    return f"{text}.read().splitlines()" if lines.func.attr == "readlines" else f"{text}.splitlines()"
