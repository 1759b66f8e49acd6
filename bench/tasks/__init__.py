"""The public bench: 376 tasks of one to six steps, 48 of them held back, from the request to the finished work.

    make bench BENCH=tasks MODEL=qwen1.5b WINDOW=8192 FORM=first SEEDS=2 HALF=held_back JOBS=4

Against the server at OLLM_BASE_URL. FORM: `first` (nothing is known of the model), `probed`, or a form of calls that is
set (`blocks`, `native`, `text`). KIND: small, long or both. AGENT: ollm, pi, opencode, codex, or `command:PROGRAM`.
ONLY picks tasks whose name contains it, EVERY=2 every second one (FROM=1: the
others). LOG names a file for every run as a line of JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row
from bench.tasks.agents import Cell, is_installed
from bench.tasks.extra import TASKS as EXTRA
from bench.tasks.fresh import TASKS as FRESH
from bench.tasks.guests_first import GUESTS_FIRST
from bench.tasks.guests_second import GUESTS_SECOND
from bench.tasks.held_back_long import TASKS as HELD_BACK_LONG
from bench.tasks.held_back_small import TASKS as HELD_BACK_SMALL
from bench.tasks.runner import TaskRun, run_tasks, summarise_runs
from bench.tasks.strangers_first import STRANGERS_FIRST
from bench.tasks.strangers_second import STRANGERS_SECOND
from bench.tasks.task import Task
from bench.tasks.tuning_long import TASKS as TUNING_LONG
from bench.tasks.tuning_small import TASKS as TUNING_SMALL
from bench.tasks.twins_code import CODE_TWINS
from bench.tasks.twins_files import FILE_TWINS
from bench.tasks.unseen import TASKS as UNSEEN

HALVES = {
    "tuning": (*TUNING_SMALL, *TUNING_LONG),
    "extra": EXTRA,
    "fresh": FRESH,
    "unseen": UNSEEN,
    "strangers_first": STRANGERS_FIRST,
    "strangers_second": STRANGERS_SECOND,
    "guests_first": GUESTS_FIRST,
    "guests_second": GUESTS_SECOND,
    "twins": (*FILE_TWINS, *CODE_TWINS),
    "held_back": (*HELD_BACK_SMALL, *HELD_BACK_LONG),
}


def choose_tasks() -> list[Task]:
    """The tasks that HALF, KIND, ONLY, FROM and EVERY name."""
    kind, only = os.environ.get("KIND", ""), os.environ.get("ONLY", "")
    tasks = HALVES[os.environ.get("HALF", "tuning")]
    chosen = [task for task in tasks if task.kind.startswith(kind) and only in task.name]
    return chosen[int(os.environ.get("FROM", "0")) :: int(os.environ.get("EVERY", "1"))]


def describe_run(run: TaskRun) -> str:
    mark = "yes" if run.finished else "no "
    return f"  {mark} {run.steps:3} steps {run.seconds:6.1f} s  {run.kind:5} {run.task}"


def rows() -> Iterator[Row]:
    base_url = os.environ.get("OLLM_BASE_URL", "").rstrip("/")
    agent = os.environ.get("AGENT", "ollm")
    if not base_url or not is_installed(agent):
        return
    model, window = os.environ.get("MODEL") or os.environ.get("OLLM_MODEL", "default"), os.environ.get("WINDOW", "8192")
    form, half = os.environ.get("FORM", "first"), os.environ.get("HALF", "tuning")
    log = Path(os.environ["LOG"]) if os.environ.get("LOG") else None
    tasks = choose_tasks()
    for seed in range(int(os.environ.get("SEEDS", "1"))):
        cell = Cell(agent, base_url, model, int(window), form, seed)
        runs = []
        for run in run_tasks(tasks, cell, int(os.environ.get("JOBS", "1")), log):
            print(describe_run(run), flush=True)
            runs.append(run)
        title = f"{agent} {model} window {window} form {form} {half} seed {seed}"
        print(f"{title}: {summarise_runs(runs)}", flush=True)
        unfinished = float(sum(not run.finished for run in runs))
        yield Row(f"{title}: tasks not finished", unfinished, unit="tasks", note=f"of {len(runs)}")
