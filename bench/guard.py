"""What safety costs: loop detection, the environment, redaction, and commands run through the supervisor."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from bench.row import Row, pair, seconds
from ollm.config.settings import LoopSettings
from ollm.domain.lazy import Lazy
from ollm.services.background_jobs import BackgroundJobs
from ollm.services.environment_sanitization import EnvironmentSanitizationService
from ollm.services.loop_detection import LoopDetectionService
from ollm.services.redaction import Redactor
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessHost
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.framework.base import ToolContext
from ollm.tools.framework.output import StreamCleaner
from ollm.tools.shell import Shell

FLOOD = 100_000_000


def rows() -> Iterable[Row]:
    yield Row("loop detection, a turn", _loop_turn() * 1000, goal=1, unit="ms", of="figure")
    yield Row("sanitise 200 variables", _sanitise() * 1000, goal=1, unit="ms", of="figure")
    yield Row("redact 200 kB of log", _redact(), goal=3, unit="s", of="figure")
    yield Row("open a file beneath the workspace", *_open_file(), unit="µs")
    yield from asyncio.run(_shell())


def _loop_turn() -> float:
    service = LoopDetectionService(LoopSettings(max_turns=10**9))
    text, args = "some words of an answer " * 100, {"path": "src/main.py", "content": "x" * 5_000}
    count = iter(range(10**9))

    def turn() -> None:
        number = next(count)
        service.record_turn()
        service.record_text(text)
        service.record_output(f"{number} {text} {number}")
        service.record_tool_call("write_file", {**args, "number": number}, result=text)
        service.check_for_warning()
        service.check_for_loop()

    return seconds(turn, 200)


def _sanitise() -> float:
    service = EnvironmentSanitizationService()
    environment = {f"VARIABLE_{number}": f"/usr/lib/place{number}:/other" for number in range(160)}
    environment |= {f"SERVICE_{number}_TOKEN": "value" for number in range(40)}
    return seconds(lambda: service.sanitize(environment), 100)


def _redact() -> float:
    line = 'INFO request id=3f2504e0-4f89 token=abc123 {"user": "bob", "password": "hunter2"} GET https://a:b@host/x\n'
    text = line * (200_000 // len(line))
    return seconds(lambda: Redactor(["known-secret-value"]).redact(text), 3)


def _open_file() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "src" / "deep" / "file.py"
        path.parent.mkdir(parents=True)
        path.write_text("x")
        boundary = Boundary.around(Path(place))

        def ours() -> None:
            for _ in range(100):
                boundary.open_file("src/deep/file.py").close()

        def plain() -> None:
            for _ in range(100):
                path.open("rb").close()

        taken, baseline = pair(ours, plain)
    return taken * 10_000, baseline * 10_000


async def _shell() -> list[Row]:
    host = ProcessHost()
    jobs = BackgroundJobs(host)
    context = ToolContext(
        boundary=Boundary.around(Path(tempfile.gettempdir())), lazy_environment=Lazy(lambda: dict(os.environ))
    )
    try:
        return [await _true(jobs, context), *await _box(jobs), await _flood(jobs, context)]
    finally:
        await jobs.close()
        await host.close()


async def _true(jobs: BackgroundJobs, context: ToolContext) -> Row:
    loop = asyncio.get_running_loop()
    ours, baseline = [], []
    for _ in range(60):
        begin = loop.time()
        await Shell(command="true").run(context, jobs)
        middle = loop.time()
        subprocess.run(["/bin/bash", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        ours.append(middle - begin)
        baseline.append(loop.time() - middle)
    half = len(ours) // 2
    return Row("shell true", sorted(ours)[half] * 1000, sorted(baseline)[half] * 1000, goal=2, unit="ms")


async def _box(jobs: BackgroundJobs) -> list[Row]:
    """The processor time that a box adds to a command, over all processes that take part."""
    with tempfile.TemporaryDirectory() as directory:
        home, workspace = Path(directory, "home"), Path(directory, "home", "work")
        workspace.mkdir(parents=True)
        plain = ToolContext(boundary=Boundary.around(workspace), lazy_environment=Lazy(lambda: dict(os.environ)))
        sandbox = Sandbox(workspace, home, cache=home / "cache")
        boxed = msgspec.structs.replace(plain, lazy_sandbox=Lazy(lambda: sandbox))
        without = await _processor_time(jobs, plain)
        rows = []
        for kind, context in (("reading", msgspec.structs.replace(boxed, unasked=True)), ("working", boxed)):
            more = await _processor_time(jobs, context) - without
            note = f"{without:.1f} ms without; level {sandbox.level}"
            rows.append(Row(f"CPU a {kind} box adds to true", more, goal=4, unit="ms", of="figure", note=note))
        sandbox.close()
        return rows


async def _processor_time(jobs: BackgroundJobs, context: ToolContext, times: int = 100) -> float:
    """Milliseconds for one command."""
    await Shell(command="true").run(context, jobs)
    before = _measure_family()
    for _ in range(times):
        await Shell(command="true").run(context, jobs)
    return (_measure_family() - before) * 1000 / times


def _measure_family() -> float:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:4]) for process in family)


async def _flood(jobs: BackgroundJobs, context: ToolContext) -> Row:
    """How much memory grows by while 100 MB of output stream through."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown: list[str] = []
    streaming = ToolContext(
        boundary=context.boundary, lazy_environment=context.lazy_environment, emit=StreamCleaner(shown.append).feed
    )
    begin = asyncio.get_running_loop().time()
    await Shell(command=f"yes 'a line of output' | head -c {FLOOD}").run(streaming, jobs)
    taken = asyncio.get_running_loop().time() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return Row("memory for 100 MB of output", grown, goal=32, unit="MB", of="figure", note=f"in {taken:.2f} s")
