"""Tasks from the request to the finished work, judged by effect.

    OLLM_BASE_URL=http://127.0.0.1:8080 make bench BENCH=tasks HALF=held_back KIND=small SEEDS=3 JOBS=16

HALF: all (the three sets nobody tuned to: held_back, strangers_second, guests_second), one of them, translated,
twins_of_translated, other_words, newcomers, only_asks or only_asks_second. KIND: small, long or empty for both.
SEED: first seed; SEEDS: how many.
FORM: first (nothing is known of the model), probed, or a call form (blocks, native, text). BEST_OF: attempts of ollm
at each task that changes files, chosen by the check that judges it. AGENT: ollm, pi, opencode, codex or
command:PROGRAM. ONLY: part of a name; EVERY=2 every second task, FROM=1 the others. LOG: a file that gets a line of
JSON for each run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.row import Row
from bench.tasks.runner import Cell, TaskRun, is_installed, run_tasks
from bench.tasks.sets import Task, load_set


def choose_tasks() -> list[Task]:
    kind, only = os.environ.get("KIND", ""), os.environ.get("ONLY", "")
    tasks = load_set(os.environ.get("HALF") or "all")
    chosen = [task for task in tasks if task.kind.startswith(kind) and only in task.name]
    return chosen[int(os.environ.get("FROM", "0")) :: int(os.environ.get("EVERY", "1"))]


def describe_run(run: TaskRun) -> str:
    mark = "yes" if run.finished else "no "
    return f"  {mark} {run.steps:3} steps {run.seconds:6.1f} s  {run.kind:5} {run.task}"


def count_finished(runs: Sequence[TaskRun], seeds: int = 1) -> list[str]:
    """Build a line for each set and kind, and a total, as the mean of the seeds."""
    groups: dict[str, list[bool]] = {}
    for run in runs:
        groups.setdefault(f"{run.set_name} {run.kind}", []).append(run.finished)
    groups["total"] = [run.finished for run in runs]
    return [f"{name} {round(sum(each) / seeds, 1):g} of {len(each) // seeds}" for name, each in groups.items()]


def read_cell() -> Cell:
    read = os.environ.get
    return Cell(
        agent=read("AGENT", "ollm"),
        base_url=read("OLLM_BASE_URL", "").rstrip("/"),
        model=read("MODEL") or read("OLLM_MODEL", "default"),
        window=int(read("WINDOW", "8192")),
        form=read("FORM", "first"),
        seed=int(read("SEED", "0")),
        best_of=int(read("BEST_OF", "1")),
    )


def rows() -> Iterator[Row]:
    cell, tasks, seeds = read_cell(), choose_tasks(), int(os.environ.get("SEEDS", "1"))
    if not cell.base_url or not is_installed(cell.agent):
        print("tasks: not run; OLLM_BASE_URL names the server, AGENT an installed agent")
        return
    log = Path(os.environ["LOG"]) if os.environ.get("LOG") else None
    all_runs: list[TaskRun] = []
    title = f"{cell.agent} {cell.model} window {cell.window} form {cell.form}"
    title += f" best of {cell.best_of}" if cell.best_of > 1 else ""
    for seed in range(cell.seed, cell.seed + seeds):
        runs = []
        for run in run_tasks(tasks, replace(cell, seed=seed), int(os.environ.get("JOBS", "1")), log):
            print(describe_run(run), flush=True)
            runs.append(run)
        all_runs += runs
        print("\n".join([f"{title} seed {seed}:", *count_finished(runs)]), flush=True)
        unfinished = float(sum(not run.finished for run in runs))
        yield Row(f"{title} seed {seed}: tasks not finished", unfinished, unit="tasks", note=f"of {len(runs)}")
    if seeds > 1:
        print("\n".join([f"{title} mean of {seeds} seeds:", *count_finished(all_runs, seeds)]), flush=True)
