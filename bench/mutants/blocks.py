"""The blocks of a module's functions: where it can be noted that a test came past, and which block holds a place."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
NOTE = "note_reach({number})\n{indent}"


class Block(NamedTuple):
    """Statements of a function that run one after another; `name` outlasts changes elsewhere in the module."""

    name: str
    start: int
    end: int
    whole: bool  # a function's own, not one of a branch in it


@lru_cache(maxsize=256)
def parse(source: bytes) -> ast.Module:
    return ast.parse(source)


@lru_cache(maxsize=256)
def list_blocks(source: bytes) -> list[Block]:
    starts = list_line_starts(source)
    return [
        block
        for name, function in walk_functions(parse(source), "")
        for block in walk_blocks(name, function, starts, source)
    ]


@lru_cache(maxsize=256)
def list_line_starts(source: bytes) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def walk_functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """Functions and methods with their dotted names; one inside a function belongs to that function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield f"{prefix}{child.name}:{child.lineno}" if is_overload(child) else f"{prefix}{child.name}", child
        else:
            inner = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix
            yield from walk_functions(child, inner)


def is_overload(function: Function) -> bool:
    """A property's setter, say, has the name of its getter."""
    return bool(function.decorator_list)


def walk_blocks(name: str, function: Function, starts: list[int], source: bytes) -> Iterator[Block]:
    number = 0
    for holder in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(holder, field, None)
            if not isinstance(statements, list) or not statements:
                continue
            start = find_start(statements[0], starts)
            before = source[source.rfind(b"\n", 0, start) + 1 : start]
            if (not before or before.isspace()) and not source.startswith(b"elif", start):
                yield Block(f"{name}#{number}", start, find_end(statements[-1], starts), holder is function)
                number += 1


def find_start(statement: ast.stmt, starts: list[int]) -> int:
    decorators = getattr(statement, "decorator_list", [])
    line = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return starts[line - 1] + statement.col_offset


def find_end(statement: ast.stmt, starts: list[int]) -> int:
    return starts[(statement.end_lineno or 0) - 1] + (statement.end_col_offset or 0)


def find_holders(source: bytes, blocks: list[Block], place: int) -> list[str]:
    """The innermost block around a place; for a default its function; else every function of the module."""
    around = [block for block in blocks if block.start <= place < block.end]
    if around:
        return [max(around, key=lambda block: (block.start, -block.end)).name]
    starts = list_line_starts(source)
    for name, function in walk_functions(parse(source), ""):
        if find_start(function, starts) <= place < find_end(function, starts):
            return [f"{name}#0"]
    return [block.name for block in blocks if block.whole]


def mark_source(source: bytes, numbers: dict[str, int]) -> bytes:
    """A note at the beginning of each block, by the block's number."""
    for block in sorted(list_blocks(source), key=lambda block: -block.start):
        indent = " " * (block.start - source.rfind(b"\n", 0, block.start) - 1)
        note = NOTE.format(number=numbers[block.name], indent=indent)
        source = source[: block.start] + note.encode() + source[block.start :]
    place = find_first_import(source)
    return source[:place] + b"from reach_plugin import note_reach\n" + source[place:]


def find_first_import(source: bytes) -> int:
    """Behind the module's docstring, and behind what must come first."""
    starts, line = list_line_starts(source), 0
    for statement in parse(source).body:
        constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not constant and not future:
            break
        line = statement.end_lineno or 0
    return starts[line]


def find_given_name(source: bytes, place: int) -> str:
    """The name that a module or a class gives the value at `place`; nothing for a place in a function."""
    starts = list_line_starts(source)
    if any(
        find_start(function, starts) <= place < find_end(function, starts)
        for _, function in walk_functions(parse(source), "")
    ):
        return ""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and find_start(node, starts) <= place < find_end(node, starts):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            return target.id if isinstance(target, ast.Name) else ""
    return ""


def find_users(source: bytes, name: str) -> tuple[list[str], list[str]]:
    """The blocks in which a name is read, and the names that a module or a class makes from it."""
    blocks, starts, made = list_blocks(source), list_line_starts(source), dict.fromkeys([name])
    found: dict[str, None] = {}
    for node in ast.walk(parse(source)):
        if read_name(node) != name or not isinstance(node, ast.expr | ast.keyword):
            continue
        place = starts[node.lineno - 1] + node.col_offset
        if any(block.start <= place < block.end for block in blocks):
            found.update(dict.fromkeys(find_holders(source, blocks, place)))
        elif given := find_given_name(source, place):
            made[given] = None
    return list(found), list(made)[1:]


def read_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.arg if isinstance(node, ast.keyword) else None


def is_called_at_load(source: bytes, place: int) -> bool:
    """Whether the function around a place is called while its module is loaded: what is loaded has its result."""
    starts, module = list_line_starts(source), parse(source)
    around = {
        function.name
        for _, function in walk_functions(module, "")
        if find_start(function, starts) <= place < find_end(function, starts)
    }
    return any(isinstance(node, ast.Call) and read_name(node.func) in around for node in walk_loaded(module))


def walk_loaded(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is loaded: all but the bodies of its functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from walk_loaded(child)
