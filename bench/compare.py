"""Compares two trees by processor time: `python -m bench.compare OLDTREE [NAME ...] [--rounds 3]`; each has its .venv.

The measurements are each tree's own. Their clock is replaced by the processor time of what they measure, so that a busy
machine says little, and of many figures the least is kept. The trees take turns: every few milliseconds where the
measurement itself is what works, else round by round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

HERE = Path(__file__).resolve().parent
NAMES = ("startup", "one_shot", "turn", "screen", "sessions", "files", "policy")
OF_A_LIVING_COMMAND = ("one_shot", "turn", "screen")  # what is measured still runs when the clock is read
SERVERS = b"tests.servers"  # started by a measurement beside the command
TURN_SECONDS = 0.02  # of processor time
Figures = dict[str, tuple[float, str]]
Trees = tuple[Path, Path]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", type=Path, help="the tree to compare with")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    trees = asked.old.resolve(), HERE.parent
    old, new = {}, {}
    for number in range(asked.rounds):
        for name in asked.names or NAMES:
            measured = measure_apart if name in OF_A_LIVING_COMMAND else measure_in_turns
            for least, taken in zip((old, new), measured(trees, name, number), strict=True):
                keep_least(least, taken)
            print(f"round {number + 1}: {name}\n{render(old, new)}\n", file=sys.stderr, flush=True)
    print(render(old, new))
    return 0


def measure_apart(trees: Trees, name: str, number: int) -> tuple[Figures, Figures]:
    """One tree after the other, with the other one first in every second round."""
    order = trees if number % 2 == 0 else trees[::-1]
    taken = {tree: _read_figures(_start(tree, name)) for tree in order}
    return taken[trees[0]], taken[trees[1]]


def measure_in_turns(trees: Trees, name: str, number: int) -> tuple[Figures, Figures]:
    """Both at once, of which one works while the other waits for its turn."""
    (old_in, new_out), (new_in, old_out) = os.pipe(), os.pipe()
    pairs = [(old_in, old_out), (new_in, new_out)]
    os.write((new_out, old_out)[number % 2], b".")
    processes = [_start(tree, name, pair) for tree, pair in zip(trees, pairs, strict=True)]
    for descriptor in (*pairs[0], *pairs[1]):
        os.close(descriptor)
    old, new = map(_read_figures, processes)
    return old, new


def _start(tree: Path, name: str, turns: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [str(tree / ".venv/bin/python"), "-c", _IN_THE_TREE, str(HERE / "compare.py"), name, *map(str, turns)]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=tree, env=kept, stdin=null, stdout=subprocess.PIPE, pass_fds=turns)


def _read_figures(process: subprocess.Popen[bytes]) -> Figures:
    printed, _ = process.communicate()
    assert process.returncode == 0, process.args
    return {name: (figure, unit) for name, figure, unit in json.loads(printed.splitlines()[-1])}


# This file may be younger than the tree it measures: it is run from here, with that tree's modules.
_IN_THE_TREE = """
import importlib.util, os, sys
sys.path[0] = os.getcwd()
spec = importlib.util.spec_from_file_location("compare", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.print_figures(sys.argv[2], [int(number) for number in sys.argv[3:]])
"""


def print_figures(name: str, turns: list[int]) -> None:
    """Runs inside the tree that is measured."""
    time.perf_counter = SharedClock(*turns).read if turns else read_command_clock
    if turns:  # a living command may do now what it did after the next reading before: there a median says more
        statistics.median = min
    statistics.quantiles = lambda taken, **_: [sorted(taken)[len(taken) // 2]]
    rows = import_module(f"bench.{name}").rows()
    print(json.dumps([(f"{name}: {row.name.removeprefix(f'{name}: ')}", row.ours, row.unit) for row in rows]))


class SharedClock:
    """Processor seconds of this process and of the children it has waited for. Who has worked for a while and reads it
    lets the other tree work; what that takes is not counted."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._began = self._uncounted = 0.0
        os.read(reading, 1)

    def read(self) -> float:
        spent = read_own_seconds()
        counted = spent - self._uncounted
        if spent - self._began > TURN_SECONDS:
            with suppress(BrokenPipeError):  # the other has ended
                os.write(self._writing, b".")
            os.read(self._reading, 1)
            self._began = read_own_seconds()
            self._uncounted += self._began - spent
        return counted


def read_own_seconds() -> float:
    ended = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def read_command_clock() -> float:
    """Processor seconds of all that this process has started, alive or not, itself and servers of the tests aside."""
    ended = getrusage(RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(_count_living, _read_children(os.getpid())))


def _count_living(process: int) -> float:
    try:
        if SERVERS in Path(f"/proc/{process}/cmdline").read_bytes():
            return 0.0
        spent = sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{process}/task").glob("*/schedstat"))
    except OSError:  # it has ended meanwhile
        return 0.0
    return spent / 1e9 + sum(map(_count_living, _read_children(process)))


def _read_children(process: int) -> list[int]:
    try:
        lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return []
    return [int(number) for text in lists for number in text.split()]


def keep_least(least: Figures, taken: Figures) -> None:
    for name, (figure, unit) in taken.items():
        least[name] = (min(figure, least[name][0]) if name in least else figure, unit)


def render(old: Figures, new: Figures) -> str:
    lines = [("what", "old", "new", "ratio"), ("---",) * 4, *(_cells(name, old, new) for name in new)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(name: str, old: Figures, new: Figures) -> tuple[str, ...]:
    (before, _), (after, unit) = old.get(name, (0.0, "")), new[name]
    return (
        name,
        f"{before:.4g} {unit}" if before else "",
        f"{after:.4g} {unit}",
        f"{after / before:.2f}" if before else "",
    )


if __name__ == "__main__":
    sys.exit(main())
