"""Runs tasks with an agent, several at a time, each in a folder and a home of its own, and judges them by effect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.tasks.agents import Cell, Start, start_agent
from bench.tasks.task import Task

TASK_SECONDS = 600


@dataclass(frozen=True)
class TaskRun:
    """One task as it went. `steps` is 0 where the agent does not say."""

    task: str
    kind: str
    asked_steps: int
    seed: int
    finished: bool
    steps: int
    seconds: float
    answer: str
    output: str


def run_tasks(tasks: Sequence[Task], cell: Cell, jobs: int, log: Path | None = None) -> Iterator[TaskRun]:
    """The runs in the order they end; with `log` each is added there as a line of JSON."""
    with ThreadPoolExecutor(jobs) as pool, tempfile.TemporaryDirectory(prefix="bench-tasks-") as place:
        runs = [pool.submit(run_task, task, cell, Path(place, str(number))) for number, task in enumerate(tasks)]
        for run in runs:
            done = run.result()
            if log:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**asdict(done), **asdict(cell)}, ensure_ascii=False) + "\n")
            yield done


def run_task(task: Task, cell: Cell, place: Path) -> TaskRun:
    folder = place / "project"
    folder.mkdir(parents=True)
    task.write_files(folder)
    start = start_agent(cell, task.asked, place / "home")
    if cell.form == "probed":
        run_program((sys.executable, "-m", "ollm", "models", "probe"), folder, start)
    begin = time.monotonic()
    output = run_program(start.command, folder, start)
    seconds = time.monotonic() - begin
    try:
        answer, steps = start.read_output(output)
    except ValueError:
        answer, steps = "", 0
    return TaskRun(
        task=task.name,
        kind=task.kind,
        asked_steps=task.steps,
        seed=cell.seed,
        finished=task.is_finished(folder, answer),
        steps=steps,
        seconds=round(seconds, 1),
        answer=answer,
        output=output,
    )


def run_program(command: tuple[str, ...], folder: Path, start: Start) -> str:
    """What it prints; a program that does not end in time is stopped, with what it started."""
    environment = {**os.environ, **start.environment}
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
        )
        try:
            program.wait(TASK_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def summarise_runs(runs: Iterable[TaskRun]) -> str:
    """How many were finished, of each kind; steps and seconds a task took."""
    runs = list(runs)
    if not runs:
        return "no tasks"
    told = [f"finished {sum(run.finished for run in runs)} of {len(runs)}"]
    for kind in sorted({run.kind for run in runs}):
        of_kind = [run for run in runs if run.kind == kind]
        told.append(f"{kind} {sum(run.finished for run in of_kind)} of {len(of_kind)}")
    told.append(f"{sum(run.steps for run in runs) / len(runs):.1f} steps")
    told.append(f"{sum(run.seconds for run in runs) / len(runs):.1f} s a task")
    return " · ".join(told)
