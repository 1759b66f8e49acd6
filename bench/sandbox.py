"""What the working sandbox costs: files made, a clone, packages unpacked and a command that does nothing, each beside
the same without a sandbox, interleaved."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import msgspec
import psutil

from bench.row import Row
from ollm.domain.lazy import Lazy
from ollm.services.background_jobs import BackgroundJobs
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessHost
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.framework.base import ToolContext
from ollm.tools.shell import Shell

ROUNDS, FILES, TRUE_TIMES = 3, 20_000, 40
MAKE = (
    'python3 -c \'import os\nfor n in range(3000): open(f"f{n}", "w").close()\n'
    'for n in range(3000): os.rename(f"f{n}", f"g{n}")\nfor n in range(3000): os.remove(f"g{n}")\''
)
LINES = {
    "3,000 files made, renamed, deleted": (MAKE, 1.5),
    "git clone of 20,000 files": ("git clone -q ../source copy", 1.2),
    "20,000 packed files unpacked": ("mkdir copy && tar xf ../packed.tar -C copy", 1.2),
}


def rows() -> Iterable[Row]:
    yield from asyncio.run(_measure())


async def _measure() -> list[Row]:
    host = ProcessHost()
    jobs = BackgroundJobs(host)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(os.path.realpath(directory))
        workspace = home / "work"
        _furnish(home, workspace)
        plain = ToolContext(boundary=Boundary.around(workspace), lazy_environment=Lazy(lambda: dict(os.environ)))
        sandbox = Sandbox(workspace, home, cache=home / "cache", readable=[home])
        boxed = msgspec.structs.replace(plain, lazy_sandbox=Lazy(lambda: sandbox))
        try:
            found = [await _compare(jobs, boxed, plain, name, *how) for name, how in LINES.items()]
            return [*found, await _add_to_true(jobs, boxed, plain, sandbox.level)]
        finally:
            sandbox.close()
            await jobs.close()
            await host.close()


def _furnish(home: Path, workspace: Path) -> None:
    for number in range(FILES):
        file = home / f"source/{number % 200}/{number}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"export const number = {number}\n" * 20)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "gc.auto=0", "-C", str(home / "source")]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["gc", "-q"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run(["tar", "cf", home / "packed.tar", "--exclude=.git", "-C", home / "source", "."], check=True)
    for number in range(1000):
        file = workspace / f"src/{number % 100}/{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    subprocess.run(["git", "init", "-q", workspace], check=True)
    (workspace / "AGENTS.md").touch()


async def _compare(
    jobs: BackgroundJobs, boxed: ToolContext, plain: ToolContext, name: str, line: str, goal: float
) -> Row:
    await _run(jobs, boxed, "true")
    spent = []
    for _ in range(ROUNDS):
        pair = []
        for context in (boxed, plain):
            subprocess.run(["rm", "-rf", str(context.boundary.workspace / "copy")], check=True)
            pair.append(await _run(jobs, context, line))
        spent.append(pair)
    subprocess.run(["rm", "-rf", str(plain.boundary.workspace / "copy")], check=True)
    (ours, clock), (theirs, their_clock) = (
        [median(each) for each in zip(*one, strict=True)] for one in zip(*spent, strict=True)
    )
    note = f"CPU, median of {ROUNDS}; by the clock {clock:.2f} s, outside {their_clock:.2f} s"
    return Row(name, ours, theirs, goal=goal, unit="s", note=note)


async def _add_to_true(jobs: BackgroundJobs, boxed: ToolContext, plain: ToolContext, level: str) -> Row:
    more = []
    for _ in range(ROUNDS):
        ours = [(await _run(jobs, boxed, "true"))[0] for _ in range(TRUE_TIMES)]
        theirs = [(await _run(jobs, plain, "true"))[0] for _ in range(TRUE_TIMES)]
        more.append((sum(ours) - sum(theirs)) * 1000 / TRUE_TIMES)
    note = f"in a workspace of 1,000 files; least {min(more):.1f}; level {level}"
    return Row("CPU the working sandbox adds to true", median(more), goal=4, unit="ms", of="figure", note=note)


async def _run(jobs: BackgroundJobs, context: ToolContext, line: str) -> tuple[float, float]:
    """Run a command. Return the CPU seconds of all processes, and those by the clock."""
    before, begin = _measure_family(), time.perf_counter()
    result = await Shell(command=line, timeout=300).run(context, jobs)
    clock, spent = time.perf_counter() - begin, _measure_family() - before
    assert "rror" not in str(result.llm_content), result.llm_content
    return spent, clock


def _measure_family() -> float:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:4]) for process in family)
