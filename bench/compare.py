"""`python -m bench.compare OLDTREE [NAME ...] [--rounds 15]`: compare the commands of two trees, run by turns.

Both trees need a .venv. Nothing of the old tree but its command is used, so its bench may differ. CPU time counts all
threads and child processes of the command; it says more than wall time on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from bench.servers import ScriptedServer, describe_read, describe_text

HERE = Path(__file__).resolve().parents[1]
TOOL_ROUNDS = 40
SESSIONS = 1_000
FILES = 30_000
SHELL_LINES = 100
CONFIG = """\
provider: {{type: openai, baseUrl: {url}, model: scripted, contextWindow: 131072}}
loopDetection: {{maxTurns: 200}}
policy: {{rules: [{{tool: read_file, action: allow}}]}}
"""
LINE = "git diff HEAD~{} | head -n 20 && grep -rn foo src"


class Spent(NamedTuple):
    """Milliseconds."""

    cpu: float
    wall: float


class Place:
    """A home and a workspace for the command of one tree."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.command = tree / ".venv/bin/ollm"
        self.home, self.workspace = folder / "home", folder / "work"
        self.home.mkdir(parents=True)
        self.workspace.mkdir()
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OLLM_HOME": str(self.home)}

    def start(self, *arguments: str, given: Path = Path(os.devnull)) -> subprocess.Popen[bytes]:
        with given.open("rb") as file:
            return subprocess.Popen(
                [self.command, *arguments],
                cwd=self.workspace,
                env=self._environment,
                stdin=file,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )


def measure_command(place: Place, *arguments: str, given: Path = Path(os.devnull)) -> Spent:
    begin = time.perf_counter()
    process = place.start(*arguments, given=given)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.returncode == 0, (arguments, said.decode())
    return Spent((usage.ru_utime + usage.ru_stime) * 1000, wall * 1000)


def measure_start(place: Place) -> Iterator[tuple[str, Spent]]:
    yield "ollm --version", measure_command(place, "--version")
    yield "ollm --help", measure_command(place, "--help")


def measure_turn(place: Place) -> Iterator[tuple[str, Spent]]:
    """Run `-p` with a model that reads a file in each round, and look at the process whenever a request comes."""
    answers = [describe_read(f"file{number}.txt", number) for number in range(TOOL_ROUNDS)]
    with ScriptedServer([*answers, describe_text("Done.")]) as server:
        (place.home / "config.yaml").write_text(CONFIG.format(url=server.base_url), encoding="utf-8")
        begin = time.perf_counter()
        process = place.start("-p", "Read all the files.")
        server.read_cpu = lambda: read_cpu_seconds(process.pid)
        _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    moments = server.moments
    assert len(moments) == TOOL_ROUNDS + 1, (len(moments), said.decode())
    yield "first request of -p", Spent(moments[0].asked_cpu * 1000, (moments[0].asked - begin) * 1000)
    gaps = [
        Spent((after.asked_cpu - before.asked_cpu) * 1000, (after.asked - before.answered) * 1000)
        for before, after in pairwise(moments)
    ]
    yield "gap between tool rounds", Spent(*(statistics.median(column) for column in zip(*gaps, strict=True)))
    yield "bytes of the first request", Spent(moments[0].size, moments[0].size)


def measure_sessions(place: Place) -> Iterator[tuple[str, Spent]]:
    yield f"list {SESSIONS:,} sessions", measure_command(place, "sessions", "list")


def measure_files(place: Place) -> Iterator[tuple[str, Spent]]:
    yield f"list {FILES:,} files", measure_command(place, "files")


def measure_policy(place: Place) -> Iterator[tuple[str, Spent]]:
    lines = place.home / "lines.jsonl"
    yield f"judge {SHELL_LINES} shell lines", measure_command(place, "policy", "check", "shell", "--batch", given=lines)


MEASUREMENTS: dict[str, Callable[[Place], Iterator[tuple[str, Spent]]]] = {
    "startup": measure_start,
    "turn": measure_turn,
    "sessions": measure_sessions,
    "files": measure_files,
    "policy": measure_policy,
}


def prepare(place: Place, name: str) -> None:
    """Write what a measurement needs. Each has a home of its own, so that none finds what another one left."""
    if name == "turn":
        for number in range(TOOL_ROUNDS):
            (place.workspace / f"file{number}.txt").write_text(f"File {number}.\nTwo lines.\n", encoding="utf-8")
    elif name == "sessions":
        write_sessions(place.home / "sessions")
    elif name == "files":
        for folder in range(FILES // 100):
            inner = place.workspace / f"package_{folder % 20}" / f"module_{folder}"
            inner.mkdir(parents=True)
            for number in range(100):
                (inner / f"file_{number}.py").touch()
    elif name == "policy":
        calls = [{"id": str(number), "params": {"command": LINE.format(number)}} for number in range(SHELL_LINES)]
        (place.home / "lines.jsonl").write_text("".join(f"{json.dumps(call)}\n" for call in calls))


def write_sessions(folder: Path) -> None:
    folder.mkdir()
    at = "2026-01-27T10:00:00.000Z"
    for number in range(SESSIONS):
        name = str(UUID(int=(number << 64) | 0x4000_0000_0000_0000_8000, version=4))
        head = {"sessionId": name, "startTime": at, "lastActivity": at, "model": "m", "provider": "p"}
        head["metadata"] = {"tokenCount": 1, "compressionCount": 0, "schemaVersion": 1, "title": f"Talk {number}"}
        message = {"role": "user", "parts": [{"type": "text", "text": "hello"}], "timestamp": at, "id": 1}
        text = json.dumps(head, separators=(",", ":"))[:-1]
        text += f',"messages":[\n{json.dumps(message, separators=(",", ":"))}\n],"toolCalls":[\n]}}\n'
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def read_cpu_seconds(process: int) -> float:
    """CPU seconds of a living process, its threads and its children, by the scheduler's own count."""
    try:
        spent = sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{process}/task").glob("*/schedstat"))
        children = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:  # it has ended meanwhile
        return 0.0
    return spent / 1e9 + sum(read_cpu_seconds(int(child)) for each in children for child in each)


def compare(old: Path, new: Path, names: list[str], rounds: int) -> dict[str, tuple[list[Spent], list[Spent]]]:
    """Run everything once to warm up, then by turns, with the other tree first in every second round."""
    figures: dict[str, tuple[list[Spent], list[Spent]]] = defaultdict(lambda: ([], []))
    with tempfile.TemporaryDirectory(prefix="ollm-compare-") as folder:
        places = {
            name: [Place(tree, Path(folder, name, side)) for tree, side in ((old, "old"), (new, "new"))]
            for name in names
        }
        for name, pair in places.items():
            for place in pair:
                prepare(place, name)
        for number in range(-1, rounds):
            for name in names:
                for side in (0, 1) if number % 2 else (1, 0):
                    for label, spent in MEASUREMENTS[name](places[name][side]):
                        if number >= 0:
                            figures[label][side].append(spent)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return figures


def render(figures: dict[str, tuple[list[Spent], list[Spent]]]) -> str:
    lines = [
        "| what | CPU old, new (median) | ratio of medians | of minima | wall: medians | minima |",
        "|---" * 6 + "|",
    ]
    for label, (old, new) in figures.items():
        unit = "bytes" if label.startswith("bytes") else "ms"
        cells = [f"{statistics.median(s.cpu for s in old):.4g}, {statistics.median(s.cpu for s in new):.4g} {unit}"]
        for field in ("cpu", "wall"):
            before, after = [getattr(spent, field) for spent in old], [getattr(spent, field) for spent in new]
            cells += [f"{statistics.median(after) / statistics.median(before):.3f}", f"{min(after) / min(before):.3f}"]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", type=Path, help="the tree to compare with")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(MEASUREMENTS)}")
    parser.add_argument("--new", type=Path, default=HERE, help="the tree that is compared (this one)")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    if unknown := set(asked.names) - MEASUREMENTS.keys():
        parser.error(f"no measurement named {', '.join(sorted(unknown))}")
    names = asked.names or list(MEASUREMENTS)
    print(render(compare(asked.old.resolve(), asked.new.resolve(), names, asked.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
