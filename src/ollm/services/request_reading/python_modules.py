"""A module of Python as far as moving its parts needs it: their lines, the names they need, and who uses them. Pure."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Collection, Iterator

from ollm.domain.struct import Data

Lines = tuple[int, int]  # the first and the last one, counted from 1
BUILTINS = frozenset(dir(builtins))
LOOKUPS = frozenset(("globals", "vars", "eval", "exec"))  # which find a name by its text
PLACE_NAMES = LOOKUPS | {"__file__", "__name__", "__doc__", "__package__", "__spec__"}
_DIVIDER = re.compile(r"[-=#*~]{3}|\bregion\b")
_MADE = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Imported(Data, frozen=True):
    """An import at the top: what it gives names to, and the file or module that it is from."""

    lines: Lines
    names: tuple[str, ...]
    module: str  # with its leading points
    plain: bool  # `from a import b, c` and nothing more on its line


class Module(Data, frozen=True):
    """`parts` are functions, classes and constants at the top that have a name of their own, `others` the names that
    come about in another way."""

    lines: tuple[str, ...]
    parts: dict[str, Lines]
    simple: frozenset[str]  # those of the parts that are neither function nor class
    imports: tuple[Imported, ...]
    others: frozenset[str]
    head: int  # the last line of its leading docstring and imports
    has_imports: bool  # among those

    def cut(self, spans: Collection[Lines]) -> str:
        """What is left without these lines."""
        gone = {number for first, last in spans for number in range(first, last + 1)}
        return "\n".join(line for number, line in enumerate(self.lines, 1) if number not in gone)

    def copy(self, spans: Collection[Lines]) -> str:
        return "\n".join(line for first, last in sorted(spans) for line in self.lines[first - 1 : last])


def read_module(text: str) -> Module | None:
    """None where it is no Python, has lines that would have to be taken apart, or is nested too deep to be read."""
    try:
        return _read_module(text)
    except RecursionError:
        return None


def _read_module(text: str) -> Module | None:
    lines = text.split("\n")
    tree = parse_python(text)
    starts = [node.lineno for node in tree.body] if tree else []
    if tree is None or "\r" in text or "\f" in text or len(set(starts)) != len(starts):
        return None
    bound = [name for node in tree.body for name in _list_bound(node)]
    parts = {
        name: _find_lines(node, lines) for node in tree.body if (name := _name_part(node)) and bound.count(name) == 1
    }
    simple = {name for node in tree.body if (name := _name_part(node)) and not isinstance(node, _MADE)}
    imports = tuple(_read_import(node, lines) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    brought = {name for found in imports for name in found.names}
    leading = list(_list_leading(tree))
    return Module(
        lines=tuple(lines),
        parts=parts,
        simple=frozenset(simple & set(parts)),
        imports=imports,
        others=frozenset(
            name for name in bound if name not in parts and not (name in brought and bound.count(name) == 1)
        ),
        head=leading[-1].end_lineno or 0 if leading else 0,
        has_imports=any(isinstance(node, ast.Import | ast.ImportFrom) for node in leading),
    )


def find_globals(text: str) -> set[str]:
    """The names that a text uses and that are found at the top of its module, its own among them."""
    tree = parse_python(text)
    if tree is None:
        return set()
    table = symtable.symtable(text, "module", "exec")
    used = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    used |= {word for said in _list_said(tree) for word in re.findall(r"[A-Za-z_]\w*", said)}
    return used | {
        symbol.get_name()
        for inner in _list_inner(table)
        for symbol in inner.get_symbols()
        if symbol.is_global() and (symbol.is_referenced() or symbol.is_declared_global())
    }


def sets_global(text: str, name: str) -> bool:
    """Whether a function gives a name of the module another value."""
    tree = parse_python(text)
    return tree is not None and any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(tree))


def parse_python(text: str) -> ast.Module | None:
    """None where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _list_said(tree: ast.Module) -> Iterator[str]:
    """Texts that name something: in `__all__`, and in annotations."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign() if "__all__" in _list_bound(node):
                held: ast.AST | None = node.value
            case ast.arg() | ast.AnnAssign():
                held = node.annotation
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                held = node.returns
            case _:
                held = None
        found = ast.walk(held) if held else ()
        yield from (part.value for part in found if isinstance(part, ast.Constant) and isinstance(part.value, str))


def _list_inner(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for inner in table.get_children():
        yield inner
        yield from _list_inner(inner)


def _list_bound(node: ast.AST) -> Iterator[str]:
    """Names that a statement gives a meaning to, as often as it does; not what is inside a function or class."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case ast.ExceptHandler():
            yield node.name or ""
    for inner in ast.iter_child_nodes(node):
        yield from _list_bound(inner)


def _name_part(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name
    return ""


def _find_lines(node: ast.stmt, lines: list[str]) -> Lines:
    """With its decorators, the comments right above it and those that are as deep as its body below."""
    decorators = node.decorator_list if isinstance(node, _MADE) else []
    first = min([node.lineno, *(found.lineno for found in decorators)])
    while first > 1 and lines[first - 2].startswith("#") and not _is_kept_comment(lines, first - 2):
        first -= 1
    last = node.end_lineno or node.lineno
    while isinstance(node, _MADE) and last < len(lines) and re.match(r"[ \t]+#", lines[last]):
        last += 1
    return first, last


def _is_kept_comment(lines: list[str], place: int) -> bool:
    """Whether a comment is about more than what follows: the head of a file or of a section."""
    return place == 0 or _DIVIDER.search(lines[place][1:]) is not None


def _read_import(node: ast.Import | ast.ImportFrom, lines: list[str]) -> Imported:
    names = tuple((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    plain = re.fullmatch(rf"from {re.escape(module)} import \w+(?:, \w+)*", lines[node.lineno - 1]) is not None
    return Imported(
        lines=(node.lineno, node.end_lineno or node.lineno), names=names, module=module, plain=plain and bool(module)
    )


def _list_leading(tree: ast.Module) -> Iterator[ast.stmt]:
    for number, node in enumerate(tree.body):
        docstring = number == 0 and ast.get_docstring(tree) is not None
        if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            return
        yield node
