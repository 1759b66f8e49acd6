"""Compares two trees by processor time: `python -m bench.compare OLDTREE [NAME ...] [--rounds 3]`, each tree with its .venv.

The measurements are each tree's own. Their clock is replaced by the processor time of what they measure, so that a busy
machine says little, and of many figures the least is kept. The trees take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

HERE = Path(__file__).resolve().parent
NAMES = ("startup", "one_shot", "turn", "screen", "sessions", "files", "policy")
OF_A_LIVING_COMMAND = ("one_shot", "turn", "screen")  # what is measured still runs when the clock is read
SERVERS = b"tests.servers"  # started by a measurement beside the command
Figures = dict[str, tuple[float, str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", type=Path, help="the tree to compare with")
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--new", type=Path, default=HERE.parent)
    asked = parser.parse_args()
    old: Figures = {}
    new: Figures = {}
    for number in range(asked.rounds):
        for name in asked.names or NAMES:
            turns = [(asked.old.resolve(), old), (asked.new.resolve(), new)]
            for tree, least in turns if number % 2 == 0 else reversed(turns):
                keep_least(least, measure_tree(tree, name))
    print(render(old, new))
    return 0


def measure_tree(tree: Path, name: str) -> Figures:
    """What one measurement of a tree says, in a process of that tree."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [str(tree / ".venv/bin/python"), "-c", _IN_THE_TREE, str(HERE), name]
    done = subprocess.run(command, cwd=tree, env=kept, stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL)
    return {name: (figure, unit) for name, figure, unit in json.loads(done.stdout.splitlines()[-1])}


# This file may be younger than the tree it measures: it is run from here, with that tree's modules before ours.
_IN_THE_TREE = """
import importlib.util, os, sys
from pathlib import Path
sys.path[0] = os.getcwd()
spec = importlib.util.spec_from_file_location("processor_clock", Path(sys.argv[1]) / "compare.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.print_figures(sys.argv[2])
"""


def print_figures(name: str) -> None:
    """Runs inside the tree that is measured."""
    time.perf_counter = read_command_clock if name in OF_A_LIVING_COMMAND else read_own_clock
    statistics.median = min
    statistics.quantiles = lambda taken, n: [sorted(taken)[len(taken) // 2]]
    rows = import_module(f"bench.{name}").rows()
    print(json.dumps([(f"{name}: {row.name}", row.ours, row.unit) for row in rows]))


def read_own_clock() -> float:
    """Processor seconds of this process and of the children it has waited for."""
    ended = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def read_command_clock() -> float:
    """Processor seconds of all that this process has started, alive or not, itself and the servers of its tests aside."""
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
    lines = [("what", "old", "new", "ratio"), *(_cells(name, old.get(name), *new[name]) for name in new)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], ("---",) * 4, *lines[1:]])


def _cells(name: str, before: tuple[float, str] | None, figure: float, unit: str) -> tuple[str, str, str, str]:
    if before is None:
        return name, "", f"{figure:.4g} {unit}", ""
    ratio = f"{figure / before[0]:.2f}" if before[0] else ""
    return name, f"{before[0]:.4g} {unit}", f"{figure:.4g} {unit}", ratio


if __name__ == "__main__":
    sys.exit(main())
