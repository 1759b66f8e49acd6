"""Small models: small tasks from the prompt to the finished work, with the ladder and without.

The model is probed first. Each task runs in a scratch repository of its own; what is learnt is kept from task to task.
Against the server at OLLM_BASE_URL (model OLLM_MODEL); without it there is nothing to measure. `OLLM_BENCH_SET` names
the tasks (usual, long, held), `OLLM_BENCH_TASKS` says how many of them are run, `OLLM_BENCH_LOG` names a file that gets
every run as a line of JSON and is gone on with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.row import Row
from bench.small_model_log import keep, kept
from bench.small_model_more_tasks import SETS
from bench.small_model_task_list import Task
from ollm.domain.struct import Data

SECONDS = 900
WINDOW = "4096"

# The same command, but a model's answers are taken as the server gives them.
WITHOUT = """
from ollm.cli.main import run
from ollm.runtime.model import model, tool_call_fallback

class PlainAnswers(tool_call_fallback.ToolCallFallback):
    async def stream_answer(self):
        async for piece in self._provider.stream(self._request):
            yield piece

model.ToolCallFallback = PlainAnswers
run()
"""
STARTS = {True: (sys.executable, "-m", "ollm"), False: (sys.executable, "-c", WITHOUT)}


class Run(Data, frozen=True):
    """One task as it went: `calls` as the record has them, `steps` the requests that led to them and the last one."""

    model: str
    task: str
    ladder: bool
    finished: bool
    steps: int
    calls: tuple[dict[str, Any], ...]
    text: str
    reason: str
    seconds: float


class Bench:
    """Homes are one for each way, so that a model's facts outlive a task."""

    def __init__(self, model: str, place: Path) -> None:
        self._model = model
        self._place = place

    def runs(self, tasks: Sequence[Task]) -> list[Run]:
        found = {(run.task, run.ladder): run for run in kept(Run) if run.model == self._model}
        subprocess.run((*STARTS[True], "models", "probe"), env=self._environment(ladder=True), check=True)
        for task in tasks:
            for ladder in (True, False):
                if (task.name, ladder) not in found:
                    found[task.name, ladder] = keep(self._run(task, ladder=ladder))
        return [found[task.name, ladder] for task in tasks for ladder in (True, False)]

    def _run(self, task: Task, *, ladder: bool) -> Run:
        with tempfile.TemporaryDirectory(dir=self._place) as scratch:
            workspace = Path(scratch)
            for name, text in task.files.items():
                (workspace / name).parent.mkdir(exist_ok=True)
                (workspace / name).write_text(text, encoding="utf-8")
            begin = time.monotonic()
            answer = self._answered(task, workspace, ladder=ladder)
            calls = tuple(answer.get("toolCalls", ()))
            return Run(
                model=self._model,
                task=task.name,
                ladder=ladder,
                finished=task.done(workspace, answer.get("text", "")),
                steps=len(calls) + 1,
                calls=calls,
                text=answer.get("text", ""),
                reason=answer["reason"],
                seconds=round(time.monotonic() - begin, 1),
            )

    def _answered(self, task: Task, workspace: Path, *, ladder: bool) -> dict[str, Any]:
        """What `-o json` printed; where there is no such document, what was said instead."""
        command = (*STARTS[ladder], "-p", task.asked, "--mode", "code", "-o", "json", "--yes")
        try:
            done = subprocess.run(
                command,
                cwd=workspace,
                env=self._environment(ladder=ladder),
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"reason": "timeout"}
        try:
            return msgspec.json.decode(done.stdout, type=dict[str, Any])
        except msgspec.DecodeError:
            return {"reason": "error", "text": done.stderr.decode("utf-8", "replace")}

    def _environment(self, *, ladder: bool) -> dict[str, str]:
        home = self._place / ("home" if ladder else "home-without")
        return {**os.environ, "OLLM_HOME": str(home), "OLLM_CONTEXT_WINDOW": WINDOW}


def rows() -> Iterator[Row]:
    if not os.environ.get("OLLM_BASE_URL"):
        return
    model = os.environ.get("OLLM_MODEL", "default")
    chosen = SETS[os.environ.get("OLLM_BENCH_SET", "usual")]
    tasks = chosen[: int(os.environ.get("OLLM_BENCH_TASKS", len(chosen)))]
    with tempfile.TemporaryDirectory() as place:
        runs = Bench(model, Path(place)).runs(tasks)
    ours, plain = ([run for run in runs if run.ladder is ladder] for ladder in (True, False))
    note = f"{len(tasks)} tasks, baseline: without the ladder"
    yield Row(f"{model}: tasks not finished", unfinished(ours), unfinished(plain), unit="tasks", note=note)
    yield Row(f"{model}: steps a task took", steps(ours), steps(plain), unit="steps", note=note)


def unfinished(runs: Sequence[Run]) -> float:
    return float(sum(not run.finished for run in runs))


def steps(runs: Sequence[Run]) -> float:
    return sum(run.steps for run in runs) / max(1, len(runs))
