"""How the strangers' tasks are judged where the common checks do not reach: words, tables, blocks and written tests."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.tasks.task import Check, check_all, check_kept, check_python, read_text, run_program

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


def check_lacks_word(word: str, *paths: str) -> Check:
    """The files are still there and none has this word, as a whole word, in it."""
    wanted = re.compile(rf"\b{re.escape(word)}\b")
    return lambda folder, _: not any(wanted.search(read_text(folder, path)) for path in paths)


def check_matches(path: str, pattern: str) -> Check:
    """The pattern, in which ^ and $ are the ends of a line, is found in the file."""
    return lambda folder, _: re.search(pattern, read_text(folder, path), re.MULTILINE) is not None


def check_lacks_match(path: str, pattern: str) -> Check:
    return lambda folder, _: re.search(pattern, read_text(folder, path), re.MULTILINE) is None


def check_said(pattern: str) -> Check:
    """The pattern is found in the answer, whatever its case."""
    return lambda _, answer: re.search(pattern, answer, re.IGNORECASE) is not None


def check_toml(path: str, change: Callable[[dict[str, Any]], object], files: Mapping[str, str]) -> Check:
    """The file says what it said before, but for what `change` does to it."""

    def check(folder: Path, _answer: str) -> bool:
        wanted = tomllib.loads(files[path])
        change(wanted)
        return tomllib.loads(read_text(folder, path)) == wanted

    return check


def check_json_change(path: str, change: Callable[[Any], object], files: Mapping[str, str]) -> Check:
    """The file says what it said before, but for what `change` does to it."""

    def check(folder: Path, _answer: str) -> bool:
        wanted = json.loads(files[path])
        change(wanted)
        return bool(json.loads(read_text(folder, path)) == wanted)

    return check


def check_table(path: str, *rows: str) -> Check:
    """The file is CSV of just these rows, blanks around the cells aside."""

    def check(folder: Path, _answer: str) -> bool:
        found = [[cell.strip() for cell in row] for row in csv.reader(read_text(folder, path).splitlines()) if row]
        return found == [row.split(",") for row in rows]

    return check


def check_records(path: str, source: str, files: Mapping[str, str]) -> Check:
    """The file is a JSON list with an object for each row of the CSV `source`; numbers may be texts."""

    def check(folder: Path, _answer: str) -> bool:
        wanted = list(csv.DictReader(files[source].splitlines()))
        found = json.loads(read_text(folder, path))
        return [{key: str(value) for key, value in row.items()} for row in found] == wanted

    return check


def check_passes(files: Mapping[str, str], path: str, *names: str) -> Check:
    """The test file is as it was, and these functions of it pass."""
    module = path.removesuffix(".py")
    calls = "\n".join(f"{module}.{name}()" for name in names)
    return check_all(check_kept(files, path), check_python(f"import {module}\n{calls}"))


def check_tests(path: str, program: str, sound: str, *faults: str) -> Check:
    """The written tests pass, and fail with each of the faults in the place of `sound` in the program."""

    def check(folder: Path, _answer: str) -> bool:
        text = read_text(folder, program)
        if sound not in text or not has_passing_tests(folder, path):
            return False
        with tempfile.TemporaryDirectory(prefix="bench-faults-") as place:
            for number, fault in enumerate(faults):
                copy = Path(place, str(number))
                shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__", ".git"))
                (copy / program).write_text(text.replace(sound, fault), encoding="utf-8")
                if has_passing_tests(copy, path):
                    return False
        return True

    return check


def has_passing_tests(folder: Path, path: str) -> bool:
    """Whether there are tests and all pass; pytest is asked only where the file names it."""
    if "pytest" in read_text(folder, path):
        return run_program((sys.executable, "-m", "pytest", "-q", path), folder).returncode == 0
    return run_program((sys.executable, "-B", "-c", TEST_RUNNER, path), folder).returncode == 0
