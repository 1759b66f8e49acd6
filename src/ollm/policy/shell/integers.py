"""Arithmetic that bash evaluates: names in it stand for text that is evaluated in turn, so only numbers are sure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ollm.policy.shell.parse import Node, iter_nodes
from ollm.policy.shell.programs import get_program

_NUMBER = r"\d+(#[0-9a-zA-Z]+)?|0[xX][0-9a-fA-F]+"
_NAME = r"[A-Za-z_]\w*"
_NUMERIC_PARAMETERS = frozenset({"#", "?", "$", "!", "UID", "EUID", "PPID"})
_BINDING_TYPES = frozenset({"ForClause", "CallExpr", "DeclClause", "BinaryArithm"})
_PLAIN_KEYS = ("Excl", "Width", "Index", "Slice", "Repl", "Names", "Exp")


def find_integer_names(statements: object) -> frozenset[str]:
    """The names that a script gives integers and nothing else, wherever it sets them."""
    given: dict[str, bool] = {}
    for node in iter_nodes(statements):
        for name, whole in _find_bindings(node) if node.get("Type") in _BINDING_TYPES else ():
            given[name] = given.get(name, True) and whole
    return frozenset(name for name, whole in given.items() if whole)


def _find_bindings(node: Node) -> Iterator[tuple[str, bool]]:
    """The names that get a value right here, each with whether that is an integer."""
    if node.get("Type") == "ForClause" and (node.get("Loop") or {}).get("Type") == "WordIter":
        loop = node["Loop"]
        items = loop.get("Items") or ()
        yield _get_name(loop), bool(items) and not node.get("Select") and all(map(_is_number_word, items))
    elif node.get("Type") == "CallExpr":
        for one in node.get("Assigns") or ():
            plain = not (one.get("Index") or one.get("Array") or one.get("Append"))
            yield _get_name(one), plain and _is_number_word(one.get("Value") or {})
    elif node.get("Type") == "DeclClause":
        for one in node.get("Args") or ():
            yield _get_name(one), False
    elif node.get("Type") == "BinaryArithm" and node.get("Op") == "=":
        name = _get_literal(node.get("X") or {})
        if re.fullmatch(_NAME, name):
            yield name, True


def _get_name(node: Node) -> str:
    return str((node.get("Name") or {}).get("Value", ""))


def _get_literal(word: Node) -> str:
    parts: list[Node] = word.get("Parts") or []
    return str(parts[0]["Value"]) if len(parts) == 1 and parts[0].get("Type") == "Lit" else ""


def _is_number_word(word: Node) -> bool:
    text = _get_literal(word)
    ranged = re.fullmatch(r"\{-?\d+\.\.-?\d+(\.\.-?\d+)?\}", text)
    return bool(re.fullmatch(r"-?\d+", text) or ranged)


def is_surely_integer(node: object, names: frozenset[str]) -> bool:
    """Whether an arithmetic expression holds nothing but numbers, names of integers and operators."""
    if not isinstance(node, dict):
        return node is None
    if node.get("Parts"):
        return all(_is_integer_part(part, names) for part in node["Parts"])
    match node.get("Type"):
        case "BinaryArithm":
            return is_surely_integer(node.get("X"), names) and is_surely_integer(node.get("Y"), names)
        case "UnaryArithm" | "ParenArithm":
            return is_surely_integer(node.get("X"), names)
    return False


def _is_integer_part(part: Node, names: frozenset[str]) -> bool:
    match part.get("Type"):
        case "Lit":
            text = str(part.get("Value", "")).strip()
            return bool(re.fullmatch(_NUMBER, text)) or text in names
        case "DblQuoted":
            return all(_is_integer_part(one, names) for one in part.get("Parts") or ())
        case "ArithmExp":
            return True  # its value is a number; what is in it is looked at by itself
        case "ParamExp":
            return _is_integer_parameter(part, names)
        case "CmdSubst":
            return _prints_number(part)
    return False


def _is_integer_parameter(part: Node, names: frozenset[str]) -> bool:
    name = str((part.get("Param") or {}).get("Value", ""))
    if any(part.get(key) for key in _PLAIN_KEYS):
        return False
    return bool(part.get("Length")) or name in _NUMERIC_PARAMETERS or name in names


def _prints_number(part: Node) -> bool:
    """`$(… | wc -l)`, `$(nproc)`, `$(date +%s)`."""
    statements: list[Node] = part.get("Stmts") or []
    command = statements[0].get("Cmd") if len(statements) == 1 else None
    while command and command.get("Type") == "BinaryCmd" and command.get("Op") == "|":
        command = command["Y"].get("Cmd")
    if not command or command.get("Type") != "CallExpr" or command.get("Assigns"):
        return False
    program, *words = [_get_literal(word) for word in command.get("Args") or ()]
    reading = get_program(program).reads
    counts = None if reading is None else reading.counts
    return counts is not None and all(word in counts for word in words)


def find_evaluated(node: Node, check: Callable[[object], bool]) -> list[str]:
    """What of an expansion is evaluated and not surely a number: its subscript, slice or indirection."""
    found: list[str] = []
    index: Any = node.get("Index")
    listed = index is not None and _get_literal(index) in ("@", "*")
    if index is not None and not listed and not check(index):
        found.append("a subscript in it is evaluated when it runs")
    cut = node.get("Slice") or {}
    if not (check(cut.get("Offset")) and check(cut.get("Length"))):
        found.append("a part of a value is cut out by what is only known when it runs")
    if node.get("Excl") and not node.get("Names") and not listed:
        found.append("which variable it reads is only known when it runs")
    return found
