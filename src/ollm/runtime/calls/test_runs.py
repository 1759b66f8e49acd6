"""Tests that a small model runs as a program: a file that only defines them does nothing then, and seems to pass."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable

_RUN = re.compile(r"(?<![\w./-])(?P<python>python3?)\s+(?P<path>(?:\./)?[\w./-]+\.py)(?=\s*(?:$|[;&|>\n]))")
_QUIET = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
_PYTEST = (  # without what plugins say of themselves at the start: a small model takes it for what is wrong
    "{python} -B -W ignore::DeprecationWarning -m pytest -q --tb=short -p no:cacheprovider {path}"
)
_PLAIN = (
    "{python} -B -c \"import runpy; [test() for name, test in runpy.run_path('{path}').items() "
    "if name.startswith('test') and callable(test)]; print('all tests pass')\""
)


def run_tests(command: str, read: Callable[[str], str | None]) -> str:
    """The command with the tests run that it would only define; `read` gives the text of a file."""
    return _RUN.sub(lambda found: _run_file(found, read(found["path"].removeprefix("./")) or ""), command)


def _run_file(found: re.Match[str], text: str) -> str:
    if not only_defines_tests(text):
        return found[0]
    if re.search(r"\bunittest\b", text):
        return f"{found['python']} -B -m unittest {found['path']}"
    if shutil.which("pytest") or re.search(r"\bpytest\b", text):
        return _PYTEST.format(**found.groupdict())
    return _PLAIN.format(**found.groupdict())


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
