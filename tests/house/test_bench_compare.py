"""Comparing two trees: each tree's own measurements, by processor time, in turns."""

import os
import sys
from pathlib import Path

from bench.compare import keep_least, measure_apart, measure_in_turns, render

MEASUREMENT = """
import statistics, subprocess, sys, time
from types import SimpleNamespace

def rows():
    taken = []
    for _ in range(4):
        begin = time.perf_counter()
        {work}
        time.sleep(0.02)
        taken.append(time.perf_counter() - begin)
    yield SimpleNamespace(name="policy: work", ours=statistics.median(taken), unit="s")
"""
SPIN = "end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"


def make_tree(place: Path, name: str, work: str) -> Path:
    (place / ".venv" / "bin").mkdir(parents=True)
    (place / ".venv" / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (place / "bench").mkdir()
    (place / "bench" / f"{name}.py").write_text(MEASUREMENT.format(work=work), encoding="utf-8")
    return place


def test_each_tree_is_measured_by_the_processor_time_of_its_own_work(tmp_path: Path) -> None:
    work = [SPIN.format(seconds=seconds).replace("\n", "\n        ") for seconds in (0.01, 0.03)]
    trees = make_tree(tmp_path / "old", "policy", work[0]), make_tree(tmp_path / "new", "policy", work[1])

    old, new = measure_in_turns(trees, "policy", 0)

    assert 0.01 <= old["policy: work"][0] < 0.025  # the sleep is not in it, nor is the other's turn
    assert 0.03 <= new["policy: work"][0] < 0.06


def test_a_command_that_still_runs_is_counted_and_the_measuring_process_is_not(tmp_path: Path) -> None:
    spin = SPIN.format(seconds=0.03)
    started = f"subprocess.run([sys.executable, '-c', {'import time' + chr(10) + spin!r}])"
    trees = (
        make_tree(tmp_path / "old", "turn", spin.replace("\n", "\n        ")),
        make_tree(tmp_path / "new", "turn", started),
    )

    old, new = measure_apart(trees, "turn", 1)

    assert old["turn: policy: work"][0] == 0
    assert new["turn: policy: work"][0] >= 0.03


def test_the_least_of_all_rounds_is_shown_beside_the_others_with_its_ratio() -> None:
    old, new = {}, {}
    for before, after in ((3.0, 4.0), (2.0, 5.0)):
        keep_least(old, {"a": (before, "ms")})
        keep_least(new, {"a": (after, "ms"), "b": (1.0, "")})

    assert render(old, new).splitlines()[2:] == ["| a | 2 ms | 4 ms | 2.00 |", "| b |  | 1  |  |"]
