"""`ollm -p hi` with a config file, against a server that answers at once: start to first request, whole run, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.row import Row
from bench.servers import InstantServer

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


PEAK = """
import resource, subprocess, sys
null = subprocess.DEVNULL
subprocess.run(sys.argv[1:], stdin=null, stdout=null, stderr=null, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def rows() -> Iterable[Row]:
    bare_python = [sys.executable, "-I", "-c", "pass"]
    with tempfile.TemporaryDirectory() as directory:
        _run_once(Path(directory), _timed)
        runs = [(*_run_once(Path(directory), _timed), _timed(bare_python)) for _ in range(TIMES)]
        memory = _run_once(Path(directory), _peak)[1]
    first, whole, size, bare = (statistics.median(column) for column in zip(*runs, strict=True))
    yield Row("start to first request", first * 1000, bare * 1000, 13, "ms")
    yield Row("whole run", whole * 1000, bare * 1000, 16, "ms")
    yield Row("peak memory", memory, _peak(bare_python), 40, "MB", of="figure")
    yield Row("first request", size / 1000, None, 8, "kB", of="figure")


def _run_once(directory: Path, measured: Callable[..., float]) -> tuple[float, float, float]:
    """Seconds to the first request, what is measured of the whole run, and bytes of that request."""
    home, workspace = directory / "home", directory / "work"
    home.mkdir(exist_ok=True)
    workspace.mkdir(exist_ok=True)
    with InstantServer() as server:
        (home / "config.yaml").write_text(CONFIG.format(url=server.base_url), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "OLLM_HOME": str(home)}
        command = [str(Path(sys.executable).parent / "ollm"), "-p", "hi"]
        begin = time.perf_counter()
        figure = measured(command, environment, workspace)
        assert server.asked is not None
        return server.asked - begin, figure, server.size


def _timed(command: list[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> float:
    """Seconds of one run."""
    null = subprocess.DEVNULL
    begin = time.perf_counter()
    subprocess.run(command, env=environment, cwd=cwd, stdin=null, stdout=null, stderr=null, check=True)
    return time.perf_counter() - begin


def _peak(command: list[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> float:
    """Megabytes of one run at most. A bare Python starts it: a child begins with the figure of whoever started it."""
    asking = [sys.executable, "-I", "-c", PEAK, *command]
    done = subprocess.run(asking, env=environment, cwd=cwd, capture_output=True, check=True)
    return float(done.stdout) / (1e6 if sys.platform == "darwin" else 1e3)
