"""Copies of the tree in which one thing at a time is broken, each with a process that runs tests in it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from select import select
from typing import IO, Any

from bench.mutants.reach import PLUGINS
from bench.mutants.worker import NOT_RUN, TIMED_OUT

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")

COLLECT_SECONDS = 600
ANSWER_SECONDS = 60  # beyond what the tests may take: a fork's end is waited for
LOOK_SECONDS = 1.0
NOT_LOADED = "could not be loaded"


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


class WorkerGoneError(Exception):
    """The process that runs the tests gives no answer: it has ended, or waits for what does not come."""


class Copy:
    """A copy of the tree, or the tree in `folder`, with a process that has collected the tests of `files` in it."""

    def __init__(self, files: list[str], folder: Path | None = None) -> None:
        self.path = folder or make_copy()
        self._writes = 0
        self._command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py")), *PLUGINS, *files]
        self._start()

    def write(self, inner: Path, source: bytes) -> None:
        """Each time with a date of its own, so that no compiled form of another text is taken for it."""
        (self.path / inner).write_bytes(source)
        self._writes += 1
        os.utime(self.path / inner, (self._writes, self._writes))

    def run(self, tests: list[str], seconds: float, inner: Path | None = None, line: int = 0) -> str:
        """The test that failed, or nothing; with `inner`, functions that are loaded become those of its text."""
        path = str(self.path / inner) if inner else ""
        asked = {"tests": tests, "seconds": seconds, "path": path, "line": line}
        assert self._worker.stdin is not None
        with suppress(BrokenPipeError):
            self._worker.stdin.write(json.dumps(asked).encode() + b"\n")
            self._worker.stdin.flush()
        return str(json.loads(self._read(seconds + ANSWER_SECONDS)))

    def start_again(self) -> None:
        """With the tree as it is now: nothing may be broken in it."""
        self._stop()
        self._start()

    def run_anew(self, tests: list[str], seconds: float) -> str:
        """The same in a process that has loaded nothing: for what is decided when a module is loaded."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", *PLUGINS, *tests]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            code = run_for(seconds, command, self.path, output)
            output.seek(0)
            printed = output.read()
        if code is None:
            return TIMED_OUT
        if code == 0:
            return "" if " passed" in printed else NOT_RUN
        return find_failed(printed, tests) or NOT_LOADED

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self.path, ignore_errors=True)

    def _start(self) -> None:
        self._worker = subprocess.Popen(
            self._command,
            cwd=self.path,
            env=describe_environment(self.path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.tests: list[str] = json.loads(self._read(COLLECT_SECONDS))

    def _stop(self) -> None:
        end_group(self._worker)
        for pipe in (self._worker.stdin, self._worker.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self, seconds: float) -> bytes:
        """One line. The worker's end of the pipe may be held by a process that outlives it: nobody waits for ever."""
        assert self._worker.stdout is not None
        pipe, deadline, found = self._worker.stdout.fileno(), time.monotonic() + seconds, b""
        while not found.endswith(b"\n"):
            ready, _, _ = select([pipe], [], [], max(0, min(LOOK_SECONDS, deadline - time.monotonic())))
            part = os.read(pipe, 1 << 16) if ready else b""
            found += part
            over = self._worker.poll() is not None or time.monotonic() > deadline
            if not part and (ready or over):
                raise WorkerGoneError
        return found


def run_for(seconds: float, command: list[str], folder: Path, output: IO[str]) -> int | None:
    """Its exit code, or nothing when it took longer; what it leaves running is ended, and not waited for."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=describe_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def find_failed(printed: str, tests: list[str]) -> str:
    """The first of `tests` that is said to have failed; a name may hold spaces."""
    for line in printed.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("FAILED", "ERROR"):
            return max((test for test in tests if f"{rest} ".startswith(f"{test} ")), key=len, default="")
    return ""
