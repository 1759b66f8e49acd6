"""The public bench of tasks: that it judges by effect, and that its runner tells finished from not finished."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.tasks import HALVES
from bench.tasks.agents import Cell, start_agent
from bench.tasks.runner import run_tasks, summarise_runs
from bench.tasks.task import Task, check_few_changes, check_says

from tests.sizes import size

TASKS = [(half, task) for half, tasks in HALVES.items() for task in tasks]
ALL_SMALL = ("fresh", "unseen", "strangers_first", "strangers_second", "twins")
FEW = ("extra", "guests_first", "guests_second", *ALL_SMALL)
CELL = Cell(agent="command:sh -c", base_url="http://127.0.0.1:1", model="m", window=8192, form="first", seed=0)


def test_there_are_two_halves_of_small_and_long_tasks() -> None:
    for half, tasks in HALVES.items():
        assert len({task.name for task in tasks}) == len(tasks) >= (20 if half in FEW else 40)
        assert {task.kind for task in tasks} == ({"small"} if half in ALL_SMALL else {"small", "long"})
    longest = [max(len(text.splitlines()) for text in task.files.values()) for _, task in TASKS if task.kind == "long"]
    assert max(longest) > 300
    assert {task.steps for _, task in TASKS} >= {1, 2, 3, 4}


@pytest.mark.parametrize(("half", "task"), TASKS[:: size(4, 1)], ids=lambda value: getattr(value, "name", value))
def test_a_task_is_not_finished_by_doing_nothing_or_by_emptying_its_files(
    half: str, task: Task, tmp_path: Path
) -> None:
    task.write_files(tmp_path)
    assert not task.is_finished(tmp_path, "")

    for name in task.files:
        (tmp_path / name).write_text("")
    assert not task.is_finished(tmp_path, "Done.")


def test_the_rest_of_a_file_must_survive(tmp_path: Path) -> None:
    files = {"a.txt": "".join(f"line {number}\n" for number in range(50))}
    check = check_few_changes(files, "a.txt", 2)
    (tmp_path / "a.txt").write_text(files["a.txt"].replace("line 7\n", "line seven\n"))
    assert check(tmp_path, "")

    (tmp_path / "a.txt").write_text("line seven\n")
    assert not check(tmp_path, "")


def test_the_runner_gives_each_task_its_own_folder_and_judges_what_was_left(tmp_path: Path) -> None:
    made = Task("made", "echo hi > made.txt; ls", {"a.txt": ""}, lambda folder, _: (folder / "made.txt").exists())
    told = Task("told", "echo the port is 8,471; ls made.txt", {"b.txt": ""}, check_says("8471"))
    missed = Task("missed", "true", {"c.txt": ""}, lambda folder, _: (folder / "made.txt").exists())

    runs = list(run_tasks([made, told, missed], CELL, 2, tmp_path / "log.jsonl"))

    assert [(run.task, run.finished) for run in runs] == [("made", True), ("told", True), ("missed", False)]
    assert "made.txt" not in runs[1].answer.split("ls")[0]
    assert summarise_runs(runs).startswith("finished 2 of 3")
    assert [json.loads(line)["task"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [
        "made",
        "told",
        "missed",
    ]


def test_the_bench_runs_from_the_command_and_prints_what_was_finished() -> None:
    environment = {
        **os.environ,
        "OLLM_BASE_URL": "http://127.0.0.1:1",
        "AGENT": "command:echo The port is 8471:",
        "ONLY": "read a value",
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.tasks"], env=environment, capture_output=True, text=True, check=True
    )

    assert "finished 1 of 1" in done.stdout


@pytest.mark.parametrize("agent", ["ollm", "pi", "opencode", "codex"])
def test_each_agent_is_pointed_at_the_server_and_the_model(agent: str, tmp_path: Path) -> None:
    cell = Cell(agent=agent, base_url="http://127.0.0.1:9", model="tiny", window=4096, form="first", seed=0)

    start = start_agent(cell, "Do it.", tmp_path)

    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "Do it." in start.command
    assert "http://127.0.0.1:9" in written + str(start.environment)
    assert "tiny" in written + str(start.environment)
