"""Finding files in a project of 100,000, of which 60,000 are ignored: against ripgrep and git."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.row import Row, pair, program, seconds
from ollm.config.settings import BUILTIN_IGNORES, FileDiscoverySettings
from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery.fuzzy import PathFinder
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext
from ollm.tools.glob import Glob
from ollm.tools.grep import Grep
from ollm.tools.grep import find_ripgrep as ripgrep

ENDINGS = ("py", "ts", "md", "txt", "json")
TYPED = {
    "what a name holds": ("m", "mo", "mod", "module_4", "module_49"),
    "scattered letters": ("srcmdl9", "tsmd77", "sme99"),
    "a slip": ("modlue_77", "mdoule_9", "modul_123"),
    "nothing alike": ("zqxj", "asyncio/base_evnts", "zzzzzzzz"),
}


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place).resolve())
        yield from bench.walks()
        yield bench.command()
        yield from bench.cached()
        yield from bench.watched()
        yield from bench.tools()
        yield bench.memory()
        yield from bench.typing()


class Bench:
    """The project, and what is measured in it."""

    def __init__(self, place: Path) -> None:
        self.root = place / "project"
        self.home = place / "home"
        self.built_in = place / "built-in"
        self.built_in.write_text("\n".join(BUILTIN_IGNORES))
        make_project(self.root)
        self.options = DiscoveryOptions(root=str(self.root))
        self.service = self.new()

    def new(self) -> FileDiscoveryService:
        return FileDiscoveryService(FileDiscoverySettings(), self.home)

    def in_root(self, *arguments: str) -> Callable[[], object]:
        """Without anything to read on standard input, which ripgrep would search instead of the files."""
        nothing = subprocess.DEVNULL
        return lambda: subprocess.run(arguments, cwd=self.root, check=False, capture_output=True, stdin=nothing)

    def cold(self) -> Callable[[], object]:
        return lambda: run(self.new().discover_all(self.options))

    def walks(self) -> Iterable[Row]:
        listing = self.in_root(
            ripgrep(), "--files", "--hidden", "--no-require-git", "--ignore-file", str(self.built_in)
        )
        ours, baseline = pair(self.cold(), listing)
        yield Row("discover_all, 100,000 files", ours * 1000, baseline * 1000, 1.3, "ms", note="against rg --files")
        git = self.in_root("git", "ls-files", "-co", "-X", str(self.built_in), "--exclude-standard")
        ours, baseline = pair(self.cold(), git)
        yield Row("discover_all, 100,000 files", ours * 1000, baseline * 1000, None, "ms", note="against git ls-files")
        yield Row(
            "discover, first entry", seconds(lambda: run(first(self.new(), self.options))) * 1000, goal=30, unit="ms"
        )

    def command(self) -> Row:
        """The whole command, from the shell and back, on a tree of which nothing is hidden."""
        whole = self.root.parent / "whole"
        for folder in range(500):
            (whole / f"package_{folder % 20}" / f"module_{folder}").mkdir(parents=True)
            for number in range(200):
                (whole / f"package_{folder % 20}" / f"module_{folder}" / f"file_{number}.py").touch()
        environment = {**os.environ, "OLLM_HOME": str(self.home), "HOME": str(self.home)}
        listing = program([str(Path(sys.executable).parent / "ollm"), "files", "--workspace", str(whole)], environment)
        return Row("ollm files, 100,000 shown", seconds(listing) * 1000, goal=150, unit="ms")

    def cached(self) -> Iterable[Row]:
        run(self.service.discover_all(self.options))
        taken = seconds(lambda: run(self.service.discover_all(self.options)))
        yield Row("discover_all again, by directory times", taken * 1000, goal=25, unit="ms")

    def watched(self) -> Iterable[Row]:
        heard = threading.Event()
        subscription = self.service.watch_changes(str(self.root), lambda *_: heard.set())
        delays = []
        for number in range(15):
            heard.clear()
            start = time.perf_counter()
            (self.root / "pkg0" / f"new{number}").touch()
            heard.wait(10)
            delays.append(time.perf_counter() - start)
            time.sleep(0.1)
        subscription.dispose()
        yield Row("write to callback", statistics.median(delays) * 1000, goal=100, unit="ms")

    def tools(self) -> Iterable[Row]:
        context = ToolContext(boundary=Boundary.around(self.root))
        plain = [ripgrep(), "--no-require-git", "--hidden", "--ignore-file", str(self.built_in)]
        search = Grep(pattern="needle")
        ours, baseline = pair(lambda: run(search.run(context, self.service)), self.in_root(*plain, "-n", "needle"))
        yield Row("grep, 100,000 files", ours * 1000, baseline * 1000, 1.3, "ms", note="against rg")
        find = Glob(pattern="**/*.py")
        ours, baseline = pair(
            lambda: run(find.run(context, self.service)), self.in_root(*plain, "--files", "-g", "*.py")
        )
        yield Row("glob, 100,000 files", ours * 1000, baseline * 1000, 1.3, "ms", note="against rg --files -g")

    def memory(self) -> Row:
        tracemalloc.start()
        entries = run(self.new().discover_all(self.options))
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return Row("memory of an entry", taken / len(entries), goal=300, unit="bytes")

    def typing(self) -> Iterable[Row]:
        finder = PathFinder(
            f"{folder}/{number}/module_{number}.py" for folder in ("src", "tests") for number in range(50_000)
        )
        for what, typed in TYPED.items():
            taken = [seconds(lambda text=text: finder.find_best(text)) for text in typed]
            yield Row(f"@file in 100,000 paths, {what}", statistics.median(taken) * 1000, goal=50, unit="ms")


RUNNER = asyncio.Runner()


def run(work):
    return RUNNER.run(work)


async def first(service: FileDiscoveryService, options: DiscoveryOptions) -> object:
    stream = service.discover(options)
    entry = await anext(stream)
    await stream.aclose()
    return entry


def make_project(root: Path) -> None:
    for package in range(20):
        for module in range(100):
            fill(root / f"pkg{package}" / f"mod{module // 10}" / f"part{module}", 20)
        fill(root / f"pkg{package}" / "build", 500)
        fill(root / f"pkg{package}" / "target", 1000)
        (root / f"pkg{package}" / ".gitignore").write_text("target/\n*.tmp\n")
    for library in range(300):
        fill(root / "node_modules" / f"lib{library}" / "dist", 100)
    (root / ".gitignore").write_text("*.log\n*.pyc\n__pycache__/\n/coverage\n.env\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    past = time.time() - 100
    for folder, _, _ in os.walk(root):
        os.utime(folder, (past, past))


def fill(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"file{number}.{ENDINGS[number % len(ENDINGS)]}").write_text("x = 1\n")
