"""`ollm -p hi` with a config file, against a server that answers at once: start to first request, whole run, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.instant_server import InstantServer
from bench.row import Row

TIMES = 15
CONFIG = """\
# a file like a person's own
provider:
  type: openai
  baseUrl: {url}
  model: instant
sessions:
  maxSessions: 50
policy:
  rules:
    - {{tool: read_file, action: allow}}
"""


def rows() -> Iterable[Row]:
    bare_python = [sys.executable, "-I", "-c", "pass"]
    with tempfile.TemporaryDirectory() as directory:
        _run_once(Path(directory))
        runs = [(*_run_once(Path(directory)), *_timed(bare_python)) for _ in range(TIMES)]
    first, whole, memory, size, bare, bare_memory = (statistics.median(column) for column in zip(*runs, strict=True))
    yield Row("start to first request", first * 1000, bare * 1000, 13, "ms")
    yield Row("whole run", whole * 1000, bare * 1000, 16, "ms")
    yield Row("peak memory", memory, bare_memory, 40, "MB", of="figure")
    yield Row("first request", size / 1000, None, 8, "kB", of="figure")


def _run_once(directory: Path) -> tuple[float, float, float, float]:
    home, workspace = directory / "home", directory / "work"
    home.mkdir(exist_ok=True)
    workspace.mkdir(exist_ok=True)
    with InstantServer() as server:
        (home / "config.yaml").write_text(CONFIG.format(url=server.base_url), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "OLLM_HOME": str(home)}
        command = [str(Path(sys.executable).parent / "ollm"), "-p", "hi"]
        begin = time.perf_counter()
        whole, memory = _timed(command, environment, workspace)
        assert server.asked is not None
        return server.asked - begin, whole, memory, server.size


def _timed(
    command: list[str], environment: dict[str, str] | None = None, cwd: Path | None = None
) -> tuple[float, float]:
    """Seconds and peak megabytes of one run."""
    begin = time.perf_counter()
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, cwd=cwd, stdin=null, stdout=null, stderr=null)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    assert process.returncode == 0, command
    kilo = 1000 if sys.platform == "darwin" else 1
    return seconds, usage.ru_maxrss / kilo / 1000
