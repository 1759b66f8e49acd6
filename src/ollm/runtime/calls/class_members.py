"""Methods that a block puts beside the class they are to be in, put into it. Pure.

Asked for a method of a class in a long file, a small model writes it alone and forgets the class.
"""

from __future__ import annotations

import ast

from ollm.services.request_reading.asked_places import find_asked_methods
from ollm.services.request_reading.python_modules import parse_python

_FIRST = ("self", "cls")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def move_into_class(path: str, before: str, after: str, request: str) -> str:
    """The file as a block leaves it, but with a new function that takes `self` at the end of the class where the
    request wants it."""
    for method in find_asked_methods(request) if path.endswith(".py") else ():
        after = _move(before, after, method.name, method.owner)
    return after


def _move(before: str, after: str, name: str, owner: str) -> str:
    tree, old = parse_python(after), parse_python(before)
    if tree is None or old is None or _find_functions(old.body, name):
        return after
    functions = _find_functions(tree.body, name)
    owners = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    if len(functions) != 1 or len(owners) != 1 or _find_functions(owners[0].body, name) or _is_used(tree, name):
        return after
    arguments = functions[0].args
    first = next((found.arg for found in (*arguments.posonlyargs, *arguments.args)), "")
    moved = _insert_method(after.split("\n"), functions[0], owners[0]) if first in _FIRST else after
    return moved if parse_python(moved) else after


def _find_functions(body: list[ast.stmt], name: str) -> list[_Function]:
    return [node for node in body if isinstance(node, _Function) and node.name == name]


def _is_used(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _insert_method(lines: list[str], function: _Function, owner: ast.ClassDef) -> str:
    start = min([function.lineno, *(found.lineno for found in function.decorator_list)]) - 1
    end, place = function.end_lineno or function.lineno, owner.end_lineno or owner.lineno
    indent = " " * owner.body[0].col_offset
    inside = _list_text_lines(function)
    method = [
        f"{indent}{line}" if line.strip() and number not in inside else line
        for number, line in enumerate(lines[start:end], start + 1)
    ]
    rest = lines[end:]
    while rest and not rest[0].strip():
        rest = rest[1:]
    left = lines[:start]
    while left and not left[-1].strip():
        left = left[:-1]
    if place <= start:
        gap = ["", ""] if rest else [""]
        return "\n".join((*left[:place], "", *method, *left[place:], *gap, *rest))
    following = place - end - (len(lines) - end - len(rest))
    gap = ["", ""] if left else []
    return "\n".join((*left, *gap, *rest[:following], "", *method, *rest[following:]))


def _list_text_lines(function: _Function) -> set[int]:
    """Lines that continue a text of several: they are part of its value. Those of the docstring are not."""
    docstring = function.body[0].value if isinstance(function.body[0], ast.Expr) else None
    texts = [
        node for node in ast.walk(function) if node is not docstring and isinstance(node, ast.JoinedStr | ast.Constant)
    ]
    return {number for node in texts for number in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)}
