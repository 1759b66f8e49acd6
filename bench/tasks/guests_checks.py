"""How the guests' tasks are judged where the common checks do not reach."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.tasks.strangers_checks import has_passing_tests
from bench.tasks.task import Check, read_text, run_program


def check_replaced(files: Mapping[str, str], path: str, old: str, *news: str) -> Check:
    """The file is as it was but for `old`, which became one of `news`; blanks at the ends of lines aside."""

    def check(folder: Path, _answer: str) -> bool:
        return trim(read_text(folder, path)) in [trim(files[path].replace(old, new)) for new in news]

    return check


def trim(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def check_runs_tests(path: str, *names: str) -> Check:
    """The written tests name these functions, and pass: as functions, as a class, or as plain asserts."""

    def check(folder: Path, _answer: str) -> bool:
        text = read_text(folder, path)
        if not all(name in text for name in names) or "assert" not in text:
            return False
        if has_passing_tests(folder, path):
            return True
        has_functions = re.search(r"^\s*def test", text, re.MULTILINE) is not None
        return not has_functions and run_program((sys.executable, path), folder).returncode == 0

    return check


def check_sorted_imports(path: str, *modules: str) -> Check:
    """The file starts with just these imports, one for each line or several in one, in the order of the alphabet."""

    def check(folder: Path, _answer: str) -> bool:
        tree = parse_python(folder, path)
        return [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names] == [*modules]

    return check


def check_defines(path: str, *names: str) -> Check:
    """The file defines these functions, classes or constants at its top level, and not only imports them."""
    return lambda folder, _: set(names) <= read_definitions(folder, path)


def check_not_defines(path: str, *names: str) -> Check:
    return lambda folder, _: not set(names) & read_definitions(folder, path)


def read_definitions(folder: Path, path: str) -> set[str]:
    names: set[str] = set()
    for node in parse_python(folder, path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def parse_python(folder: Path, path: str) -> ast.Module:
    try:
        return ast.parse(read_text(folder, path))
    except SyntaxError as error:
        raise ValueError(str(error)) from error


def check_ini(path: str, files: Mapping[str, str], section: str, key: str, *values: str) -> Check:
    """The file says what it said before, but for this key, which has one of these values."""

    def check(folder: Path, _answer: str) -> bool:
        found, wanted = configparser.ConfigParser(), configparser.ConfigParser()
        try:
            found.read_string(read_text(folder, path))
        except configparser.Error:
            return False
        wanted.read_string(files[path])
        wanted[section][key] = found[section][key]
        return found[section][key].lower() in values and found == wanted

    return check


def check_env(path: str, files: Mapping[str, str], **changed: str) -> Check:
    """The variables are as they were, but for these; quotes and the order aside."""

    def check(folder: Path, _answer: str) -> bool:
        return read_variables(read_text(folder, path)) == {**read_variables(files[path]), **changed}

    return check


def read_variables(text: str) -> dict[str, str]:
    pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return {name.removeprefix("export ").strip(): value.strip().strip("\"'") for name, value in pairs}


def check_no_files(path: str) -> Check:
    """The folder is gone, or holds nothing but what Python leaves behind."""
    return lambda folder, _: (
        not [each for each in (folder / path).rglob("*") if each.is_file() and "__pycache__" not in each.parts]
    )
