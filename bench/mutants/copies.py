"""Copies of the tree in which one thing at a time is broken, each with a process that runs tests in it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.mutants.reach import PLUGINS
from bench.mutants.worker import NOT_RUN

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def make_copy() -> Path:
    copy = Path(tempfile.mkdtemp(prefix="ollm-mutants-"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    shutil.copy(Path(__file__).with_name("reach_plugin.py"), copy / "src")
    return copy


def describe_environment(copy: Path) -> dict[str, str]:
    """The copy's code before the installed one, and no plugins but those that are named: finding them takes seconds."""
    return {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Copy:
    """A copy of the tree with a process that has collected the tests of `files` in it."""

    def __init__(self, files: list[str]) -> None:
        self.path = make_copy()
        self._writes = 0
        self._worker = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("worker.py")), *PLUGINS, *files],
            cwd=self.path,
            env=describe_environment(self.path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.tests: list[str] = json.loads(self._read())

    def write(self, inner: Path, source: bytes) -> None:
        """Each time with a date of its own, so that no compiled form of another text is taken for it."""
        (self.path / inner).write_bytes(source)
        self._writes += 1
        os.utime(self.path / inner, (self._writes, self._writes))

    def run(self, tests: list[str], seconds: float, inner: Path | None = None, line: int = 0) -> str:
        """The test that failed, or nothing; with `inner`, functions that are loaded become those of its text."""
        path = str(self.path / inner) if inner else ""
        assert self._worker.stdin is not None
        self._worker.stdin.write(json.dumps({"tests": tests, "seconds": seconds, "path": path, "line": line}) + "\n")
        self._worker.stdin.flush()
        return str(json.loads(self._read()))

    def run_anew(self, tests: list[str], seconds: float) -> str:
        """The same in a process that has loaded nothing: for what is decided when a module is loaded."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", *PLUGINS, *tests]
        environment: dict[str, Any] = describe_environment(self.path)
        try:
            done = subprocess.run(
                command, cwd=self.path, env=environment, timeout=seconds, check=False, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return "took too long"
        failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if done.returncode == 0:
            return "" if " passed" in done.stdout else NOT_RUN
        return failed[0] if failed else "could not be loaded"

    def close(self) -> None:
        self._worker.kill()
        self._worker.wait()
        shutil.rmtree(self.path, ignore_errors=True)

    def _read(self) -> str:
        assert self._worker.stdout is not None
        return self._worker.stdout.readline() or "[]"
