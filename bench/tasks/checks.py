"""Judge a task by the files and the answer an agent left behind."""

from __future__ import annotations

import ast
import csv
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECK_SECONDS = 10


@dataclass(frozen=True)
class Outcome:
    """A project before the run, its folder after the run, and the final answer."""

    files: Mapping[str, str]
    folder: Path
    answer: str

    def read(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")


def is_finished(checks: Sequence[Mapping[str, Any]], outcome: Outcome) -> bool:
    """Apply every check. A check that raises is not met."""
    try:
        return all(apply_check(check, outcome) for check in checks)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, subprocess.SubprocessError):
        return False


def apply_check(check: Mapping[str, Any], outcome: Outcome) -> bool:
    arguments = {name: value for name, value in check.items() if name != "check"}
    return CHECKS[check["check"]](outcome, **arguments)


def says(outcome: Outcome, texts: Sequence[str]) -> bool:
    """Find every text in the answer, ignoring case and thousands separators."""
    return all(text.lower() in outcome.answer.replace(",", "").lower() for text in texts)


def says_any(outcome: Outcome, texts: Sequence[str]) -> bool:
    return any(text.lower() in outcome.answer.replace(",", "").lower() for text in texts)


def says_number(outcome: Outcome, number: int, word: str = "-") -> bool:
    """Find the number or its word in the answer, not as part of a longer number."""
    return re.search(rf"(?<![\d.]){number}(?!\d|\.\d)|\b{word}\b", outcome.answer, re.IGNORECASE) is not None


def answer_matches(outcome: Outcome, pattern: str) -> bool:
    return re.search(pattern, outcome.answer, re.IGNORECASE) is not None


def contains(outcome: Outcome, path: str, texts: Sequence[str]) -> bool:
    return all(text in outcome.read(path) for text in texts)


def lacks(outcome: Outcome, path: str, texts: Sequence[str]) -> bool:
    """Require the file to exist and to hold none of the texts."""
    return not any(text in outcome.read(path) for text in texts)


def lacks_word(outcome: Outcome, word: str, paths: Sequence[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", outcome.read(path)) for path in paths)


def matches(outcome: Outcome, path: str, pattern: str) -> bool:
    return re.search(pattern, outcome.read(path), re.MULTILINE) is not None


def lacks_match(outcome: Outcome, path: str, pattern: str) -> bool:
    return re.search(pattern, outcome.read(path), re.MULTILINE) is None


def equals(outcome: Outcome, path: str, text: str) -> bool:
    return outcome.read(path).strip() == text.strip()


def lines(outcome: Outcome, path: str, text: str) -> bool:
    """Compare line by line, ignoring trailing blanks."""
    return trim_lines(outcome.read(path)) == trim_lines(text)


def replaced(outcome: Outcome, path: str, old: str, news: Sequence[str]) -> bool:
    """Require the original file with `old` replaced by one of `news`, ignoring trailing blanks."""
    before = outcome.files[path]
    return trim_lines(outcome.read(path)) in [trim_lines(before.replace(old, new)) for new in news]


def trim_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def same_words(outcome: Outcome, path: str, words: Sequence[str]) -> bool:
    """Require exactly these words in any order."""
    return sorted(outcome.read(path).split()) == sorted(words)


def gone(outcome: Outcome, path: str) -> bool:
    return not (outcome.folder / path).exists()


def kept(outcome: Outcome, paths: Sequence[str]) -> bool:
    """Require these files unchanged."""
    return all(outcome.read(path) == outcome.files[path] for path in paths)


def untouched(outcome: Outcome) -> bool:
    """Require the same files with the same text, and no others. Compiled modules and our own notes may be there."""
    found = {path.relative_to(outcome.folder) for path in outcome.folder.rglob("*")}
    found = {path for path in found if not {".ollm", "__pycache__"} & set(path.parts)}
    wanted = {path for name in outcome.files for path in (Path(name), *Path(name).parents)} - {Path()}
    return found == wanted and kept(outcome, list(outcome.files))


def few_changes(outcome: Outcome, path: str, lines: int) -> bool:
    """Allow at most this many added and removed lines."""
    diff = difflib.ndiff(outcome.files[path].splitlines(), outcome.read(path).splitlines())
    return sum(line[:2] in ("+ ", "- ") and bool(line[2:].strip()) for line in diff) <= lines


def json_value(
    outcome: Outcome, path: str, value: object, at: Sequence[str] = (), *, lowercase_values: bool = False
) -> bool:
    found = json.loads(outcome.read(path))
    for key in at:
        found = found[key]
    if lowercase_values:
        found = {key: str(each).lower() for key, each in found.items()}
    return bool(found == value)


def json_change(outcome: Outcome, path: str, change: Mapping[str, Any]) -> bool:
    """Require the original data with `change` merged into it."""
    return bool(json.loads(outcome.read(path)) == merge(json.loads(outcome.files[path]), change))


def toml_change(outcome: Outcome, path: str, change: Mapping[str, Any]) -> bool:
    return tomllib.loads(outcome.read(path)) == merge(tomllib.loads(outcome.files[path]), change)


def merge(data: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in change.items():
        data[key] = merge(data[key], value) if isinstance(value, Mapping) else value
    return data


def env_change(outcome: Outcome, path: str, change: Mapping[str, str]) -> bool:
    """Compare variables, ignoring quotes and order."""
    return read_variables(outcome.read(path)) == {**read_variables(outcome.files[path]), **change}


def read_variables(text: str) -> dict[str, str]:
    pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return {name.removeprefix("export ").strip(): value.strip().strip("\"'") for name, value in pairs}


def table(outcome: Outcome, path: str, rows: Sequence[str]) -> bool:
    """Compare CSV rows, ignoring blanks around cells."""
    found = [[cell.strip() for cell in row] for row in csv.reader(outcome.read(path).splitlines()) if row]
    return found == [row.split(",") for row in rows]


def records(outcome: Outcome, path: str, source: str) -> bool:
    """Require a JSON list with one object for each row of the CSV file `source`; numbers may be strings."""
    wanted = list(csv.DictReader(outcome.files[source].splitlines()))
    return [{key: str(value) for key, value in row.items()} for row in json.loads(outcome.read(path))] == wanted


def defines(outcome: Outcome, path: str, names: Sequence[str]) -> bool:
    """Require top-level definitions; an import does not count."""
    return set(names) <= read_definitions(outcome.read(path))


def not_defines(outcome: Outcome, path: str, names: Sequence[str]) -> bool:
    return not set(names) & read_definitions(outcome.read(path))


def read_definitions(text: str) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def python(outcome: Outcome, code: str, output: str = "") -> bool:
    """Run Python code in the folder and compare the words it prints."""
    done = run_check((sys.executable, "-c", "import sys; sys.path.insert(0, '.')\n" + code), outcome.folder)
    return done.returncode == 0 and done.stdout.split() == output.split()


def command(outcome: Outcome, command: str, output: str | None = None) -> bool:
    """Run a shell command in the folder; it must succeed and, if given, print these words."""
    done = run_check(("sh", "-c", command.replace("python ", f"{sys.executable} ")), outcome.folder)
    return done.returncode == 0 and (output is None or done.stdout.split() == output.split())


def tests(outcome: Outcome, path: str, program: str, sound: str, faults: Sequence[str]) -> bool:
    """Require the written tests to pass, and to fail with each fault in place of `sound` in the program."""
    text = outcome.read(program)
    if sound not in text or not has_passing_tests(outcome.folder, path):
        return False
    with tempfile.TemporaryDirectory(prefix="bench-faults-") as place:
        for number, fault in enumerate(faults):
            copy = Path(place, str(number))
            shutil.copytree(outcome.folder, copy, ignore=shutil.ignore_patterns("__pycache__", ".git"))
            (copy / program).write_text(text.replace(sound, fault), encoding="utf-8")
            if has_passing_tests(copy, path):
                return False
    return True


TEST_RUNNER = """
import importlib.util, sys
sys.path.insert(0, '.')
path = sys.argv[1]
spec = importlib.util.spec_from_file_location('written_tests', path)
module = importlib.util.module_from_spec(spec)
sys.modules['written_tests'] = module
spec.loader.exec_module(module)
ran = 0
if 'unittest' in open(path).read():
    import unittest
    done = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(module))
    if not done.wasSuccessful():
        sys.exit(1)
    ran += done.testsRun
for name, value in list(vars(module).items()):
    if name.startswith('test') and callable(value):
        value()
        ran += 1
    elif name.startswith('Test') and isinstance(value, type) and not hasattr(value, 'assertEqual'):
        for method in [each for each in dir(value) if each.startswith('test')]:
            getattr(value(), method)()
            ran += 1
sys.exit(0 if ran else 5)
"""


def has_passing_tests(folder: Path, path: str) -> bool:
    """Run the tests of a file; pytest is needed only if the file names it."""
    if "pytest" in (folder / path).read_text(encoding="utf-8"):
        return run_check((sys.executable, "-m", "pytest", "-q", path), folder).returncode == 0
    return run_check((sys.executable, "-B", "-c", TEST_RUNNER, path), folder).returncode == 0


def run_check(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    for compiled in list(folder.rglob("__pycache__")):  # may be older than an edit within the same second
        shutil.rmtree(compiled, ignore_errors=True)
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


CHECKS: Mapping[str, Callable[..., bool]] = {
    check.__name__: check
    for check in (
        says, says_any, says_number, answer_matches, contains, lacks, lacks_word, matches, lacks_match, equals, lines,
        replaced, same_words, gone, kept, untouched, few_changes, json_value, json_change, toml_change, env_change,
        table, records, defines, not_defines, python, command, tests,
    )
}  # fmt: skip
