"""Comparing two trees: the commands of both, by turns, in CPU time."""

import os
from pathlib import Path

import bench.compare as comparison
import pytest

SPIN = "end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def make_tree(place: Path, *, seconds: float) -> Path:
    """A tree whose command works for a while and then sleeps, and whose bench is of no use."""
    command = place / ".venv/bin/ollm"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/usr/bin/env python3\nimport time\n{SPIN.format(seconds=seconds)}time.sleep(0.05)\n")
    command.chmod(0o755)
    return place


def test_the_commands_of_two_trees_are_compared_by_cpu_time(tmp_path: Path) -> None:
    old, new = make_tree(tmp_path / "old", seconds=0.1), make_tree(tmp_path / "new", seconds=0.3)

    figures = comparison.compare(old, new, ["startup"], rounds=2)

    before, after = figures["ollm --help"]
    assert len(before) == len(after) == 2
    assert min(spent.cpu for spent in after) >= 300
    assert min(spent.wall for spent in after) >= 350
    line = next(line for line in comparison.render(figures).splitlines() if "--help" in line)
    ratio = float(line.split("|")[4])
    assert 1.5 < ratio < 3


def test_a_living_process_is_counted_with_its_children(tmp_path: Path) -> None:
    begin = comparison.read_cpu_seconds(os.getpid())
    sum(range(2_000_000))

    assert comparison.read_cpu_seconds(os.getpid()) > begin > 0
    assert comparison.read_cpu_seconds(2**22 + 1) == 0


def test_an_unknown_measurement_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["compare", ".", "nosuch"])

    with pytest.raises(SystemExit):
        comparison.main()
    assert "nosuch" in capsys.readouterr().err
