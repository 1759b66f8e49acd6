"""Tests that a small model runs as a program: a file that only defines them does nothing then, and seems to pass."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Collection

_RUN = re.compile(r"(?<![\w./-])(?P<python>python3?)\s+(?P<path>(?:\./)?[\w./-]+\.py)(?=\s*(?:$|[;&|>\n]))")
_QUIET = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
_PYTEST = (  # without what plugins say of themselves at the start: a small model takes it for what is wrong
    "{python} -B -W ignore::DeprecationWarning -m pytest -q --tb=short -p no:cacheprovider {path}"
)
_PLAIN = (
    "{python} -B -c \"import runpy; [test() for name, test in runpy.run_path('{path}').items() "
    "if name.startswith('test') and callable(test)]; print('all tests pass')\""
)


def run_tests(command: str, read: Callable[[str], str | None], made: Collection[str] = ()) -> str:
    """The command with the tests run that it would only define; `read` gives the text of a file. Those `made` in this
    turn that call themselves are run with pytest too, which says what came where they fail."""

    def write(found: re.Match[str]) -> str:
        path = found["path"].removeprefix("./")
        text = read(path) or ""
        if path in made and shutil.which("pytest") and calls_own_tests(text):
            return _PYTEST.format(**found.groupdict())
        return _run_file(found, text)

    return _RUN.sub(write, command)


def _run_file(found: re.Match[str], text: str) -> str:
    if not only_defines_tests(text):
        return found[0]
    if re.search(r"\bunittest\b", text):
        return f"{found['python']} -B -m unittest {found['path']}"
    if shutil.which("pytest") or re.search(r"\bpytest\b", text):
        return _PYTEST.format(**found.groupdict())
    return _PLAIN.format(**found.groupdict())


def calls_own_tests(text: str) -> bool:
    """Whether a module defines plain tests and does nothing else but calling them, and saying so."""
    if "def test" not in text or re.search(r"\bunittest\b", text):
        return False
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = [part for node in body for part in _list_main(node)]
    rest = ast.Module([node for node in body if node not in called and not _list_main(node)], [])
    tests = {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")}
    return bool(called) and only_defines_tests(ast.unparse(rest)) and all(_is_call(part, tests) for part in called)


def _list_main(node: ast.stmt) -> list[ast.stmt]:
    """What a statement runs: it itself, or what it does where the file is the program."""
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return [*node.body, *node.orelse]
    return [node] if isinstance(node, ast.Expr) and not is_constant(node) else []


def _is_call(node: ast.stmt, names: Collection[str]) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    called = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    return called == "print" or (called in names and isinstance(call, ast.Call) and not call.args and not call.keywords)


def only_defines_tests(text: str) -> bool:
    """Whether a module defines tests and does nothing else."""
    if "test" not in text.lower():
        return False
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    quiet = all(isinstance(node, _QUIET) or is_constant(node) for node in body)
    return quiet and any(name.lower().startswith("test") for name in names)


def is_constant(node: ast.stmt) -> bool:
    """Whether a statement is a bare value that does nothing, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
