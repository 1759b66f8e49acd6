"""A task of the public bench: what is asked, the files it starts from, and how its effect is judged."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Check = Callable[[Path, str], bool]  # gets the folder as it was left and the final answer
Kind = Literal["small", "long"]
CHECK_SECONDS = 10


@dataclass(frozen=True)
class Task:
    """`steps` is how many things are asked for. `check` may raise: then the task is not finished."""

    name: str
    asked: str
    files: Mapping[str, str]
    check: Check
    steps: int = 1
    kind: Kind = "small"

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def is_finished(self, folder: Path, answer: str) -> bool:
        try:
            return self.check(folder, answer)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, subprocess.SubprocessError):
            return False


def check_all(*checks: Check) -> Check:
    return lambda folder, answer: all(check(folder, answer) for check in checks)


def check_contains(path: str, *texts: str) -> Check:
    return lambda folder, _: all(text in read_text(folder, path) for text in texts)


def check_lacks(path: str, *texts: str) -> Check:
    """The file is still there and holds none of these."""
    return lambda folder, _: not any(text in read_text(folder, path) for text in texts)


def check_compact(path: str, *texts: str) -> Check:
    """The file holds these texts, blanks and quotes aside."""
    return lambda folder, _: all(squeeze(text) in squeeze(read_text(folder, path)) for text in texts)


def check_equals(path: str, text: str) -> Check:
    """The file holds just this, blanks at its ends aside."""
    return lambda folder, _: read_text(folder, path).strip() == text.strip()


def check_json(path: str, read: Callable[[Any], Any], wanted: object) -> Check:
    return lambda folder, _: bool(read(json.loads(read_text(folder, path))) == wanted)


def check_says(*texts: str) -> Check:
    """The answer names all of these, thousands separators and case aside."""
    return lambda _, answer: all(text.lower() in answer.replace(",", "").lower() for text in texts)


def check_says_any(*texts: str) -> Check:
    return lambda _, answer: any(text.lower() in answer.replace(",", "").lower() for text in texts)


def check_gone(path: str) -> Check:
    return lambda folder, _: not (folder / path).exists()


def check_kept(files: Mapping[str, str], *paths: str) -> Check:
    """These files are as they were."""
    return lambda folder, _: all(read_text(folder, path) == files[path] for path in paths)


def check_few_changes(files: Mapping[str, str], path: str, lines: int) -> Check:
    """At most so many lines of the file were added or taken away: the rest of it survived."""

    def check(folder: Path, _answer: str) -> bool:
        diff = difflib.ndiff(files[path].splitlines(), read_text(folder, path).splitlines())
        return sum(line[:2] in ("+ ", "- ") and bool(line[2:].strip()) for line in diff) <= lines

    return check


def check_python(code: str, output: str = "") -> Check:
    """This Python code runs in the folder without an error and prints just this."""

    def check(folder: Path, _answer: str) -> bool:
        done = run_program((sys.executable, "-c", "import sys; sys.path.insert(0, '.')\n" + code), folder)
        return done.returncode == 0 and done.stdout.split() == output.split()

    return check


def check_command(command: str, output: str | None = None) -> Check:
    """This shell command succeeds in the folder and, where wanted, prints just this."""

    def check(folder: Path, _answer: str) -> bool:
        done = run_program(("sh", "-c", command.replace("python ", f"{sys.executable} ")), folder)
        return done.returncode == 0 and (output is None or done.stdout.split() == output.split())

    return check


def run_program(command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    for compiled in list(folder.rglob("__pycache__")):  # may be older than an edit within the same second
        shutil.rmtree(compiled, ignore_errors=True)
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def read_text(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def squeeze(text: str) -> str:
    return "".join(text.replace('"', "").replace("'", "").split())
