"""Names that a block of Python uses and nothing defines: of modules beside it they are imported, where it imports
others from there or has a copy of them; modules of the standard library always. Pure but for the reading."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Mapping

from ollm.services.request_reading.plain_words import is_test
from ollm.services.request_reading.python_modules import parse_python


def import_used_names(path: str, content: str, read: Callable[[str], str | None], before: str = "") -> str:
    """The block with each `from MODULE import …` of a module beside it made whole; what the file has already stays
    its own. Of a whole file only for names that it did not use `before`."""
    tree = parse_python(content) if path.endswith(".py") else None
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)] if tree else []
    if tree is None or not imports or any(alias.name == "*" for node in imports for alias in node.names):
        return content
    there = parse_python(read(path) or "")
    unknown = _find_unknown(tree) - (_list_bound(ast.walk(there)) if there else set())
    earlier = parse_python(before)
    unknown -= _find_unknown(earlier) if earlier else set()
    folder = path[: path.rfind("/") + 1]
    lines = content.split("\n")
    for node in imports:
        line = lines[node.lineno - 1]
        plain = not node.level and node.lineno == node.end_lineno and line.isascii() and not set("(;\\") & set(line)
        if not plain or not unknown:
            continue
        module = parse_python(read(f"{folder}{node.module}.py") or "")
        if lacking := sorted(unknown & _list_made(module.body)) if module else []:
            lines[node.lineno - 1] = f"{line[: node.end_col_offset]}, {', '.join(lacking)}{line[node.end_col_offset :]}"
            unknown -= set(lacking)
    return "\n".join(lines)


def import_used_modules(path: str, before: str, after: str) -> str:
    """The file as a block leaves it, with the modules of the standard library that it uses and did not use `before`."""
    tree, earlier = parse_python(after) if path.endswith(".py") else None, parse_python(before)
    if tree is None or not tree.body or any(_is_star(node) for node in ast.walk(tree)):
        return after
    unknown = _find_unknown(tree) - (_find_unknown(earlier) if earlier else set())
    read = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.id for node in read if isinstance(node, ast.Name)} & unknown & sys.stdlib_module_names
    if not used:
        return after
    rest = [node for node in tree.body if not _is_heading(node)]
    first = rest[0] if rest else tree.body[-1]
    decorated = isinstance(first, ast.FunctionDef | ast.ClassDef) and first.decorator_list
    place = (decorated[0] if decorated else first).lineno - 1
    lines = after.split("\n")
    gap = [] if isinstance(first, ast.Import | ast.ImportFrom) else [""]
    gap *= 2 if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else 1
    return "\n".join([*lines[:place], *(f"import {name}" for name in sorted(used)), *gap, *lines[place:]])


def _is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _is_heading(node: ast.stmt) -> bool:
    """What stands before the imports of a module."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def import_tested_names(path: str, content: str, places: Mapping[str, str], read: Callable[[str], str | None]) -> str:
    """The block for a new test without a second copy of a function that was to be written in a module beside it, and is
    there (`places`): it is imported."""
    tree = parse_python(content) if path.endswith(".py") and is_test(path) and read(path) is None else None
    if tree is None or "__future__" in content or ast.get_docstring(tree):
        return content
    lines, gone = content.split("\n"), []
    for node in reversed(tree.body):
        place = places.get(node.name, "") if isinstance(node, ast.FunctionDef) and not node.decorator_list else ""
        module, _, ending = place.rpartition(".")
        if ending != "py" or not module.isidentifier() or "/" in path or place == path:
            continue
        there = parse_python(read(place) or "")
        if there and isinstance(node, ast.FunctionDef) and node.name in _list_made(there.body):
            rest = "\n".join(lines[node.end_lineno :]).lstrip("\n")
            lines = [*lines[: node.lineno - 1], *rest.split("\n")]
            gone.append(f"from {module} import {node.name}")
    kept = "\n".join(lines).lstrip("\n")
    head = "".join(f"{line}\n" for line in reversed(gone) if line not in lines)
    gap = "" if not head or kept.startswith(("import ", "from ")) else "\n\n"
    return f"{head}{gap}{kept}" if gone else content


def _find_unknown(tree: ast.Module) -> set[str]:
    """Names that are read and nowhere bound."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return read - _list_bound(ast.walk(tree)) - set(dir(builtins))


def _list_bound(nodes: Iterable[ast.AST]) -> set[str]:
    """All names that these nodes give a meaning to."""
    found: set[str] = set()
    for node in nodes:
        found |= _list_made((node,))
        match node:
            case ast.Import() | ast.ImportFrom():
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case ast.Name(ctx=ast.Store() | ast.Del()):
                found.add(node.id)
            case ast.arg():
                found.add(node.arg)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                found.add(node.name or "")
            case ast.MatchMapping():
                found.add(node.rest or "")
    return found


def _list_made(nodes: Iterable[ast.AST]) -> set[str]:
    """Functions, classes and constants of these statements."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Assign():
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found
