"""One turn of fifty calls: from the end of one answer to the next request, with every record on disk.

The model reads another file each time, through dispatch and a policy that allows reading. The baseline is the four
durable lines that a step is recorded with.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from bench.row import Row
from bench.servers import ScriptedServer, describe_read, describe_text

CALLS = 50
CONFIG = """\
provider: {{type: openai, baseUrl: {url}, model: scripted, contextWindow: 131072}}
loopDetection: {{maxTurns: 200}}
policy:
  rules:
    - {{tool: read_file, action: allow}}
"""


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        server = run_turn(Path(directory))
        floor = measure_durable_lines(Path(directory))
    gaps = [(after.asked - before.answered) * 1000 for before, after in pairwise(server.moments)]
    assert len(gaps) == CALLS, gaps
    yield Row("answer to next request, median", statistics.median(gaps), floor, 4, "ms", of="figure")
    first, last = statistics.median(gaps[:10]), statistics.median(gaps[-10:])
    yield Row("the last ten against the first ten", last, first, 1.5, "ms")
    yield Row("connections of the turn", server.connections, None, 2, "", of="figure")


def run_turn(directory: Path) -> ScriptedServer:
    home, workspace = directory / "home", directory / "work"
    home.mkdir()
    workspace.mkdir()
    for number in range(CALLS):
        (workspace / f"file{number}.txt").write_text(f"This is file {number}.\nIt has two lines.\n", encoding="utf-8")
    answers = [describe_read(f"file{number}.txt", number) for number in range(CALLS)]
    with ScriptedServer([*answers, describe_text("Done.")]) as server:
        (home / "config.yaml").write_text(CONFIG.format(url=server.base_url), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "OLLM_HOME": str(home)}
        command = [str(Path(sys.executable).parent / "ollm"), "-p", "Read all the files."]
        null = subprocess.DEVNULL
        subprocess.run(command, env=environment, cwd=workspace, stdin=null, stdout=null, stderr=null, check=True)
    return server


def measure_durable_lines(directory: Path) -> float:
    taken = []
    with (directory / "lines").open("ab", buffering=0) as file:
        for _ in range(CALLS):
            began = time.perf_counter()
            for _ in range(4):
                file.write(b"x" * 200 + b"\n")
                os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)
