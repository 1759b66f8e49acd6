"""Small models: ten small tasks from the prompt to the finished work, with the ladder and without.

Each runs in a scratch repository of its own.
Against the server at OLLM_BASE_URL (model OLLM_MODEL); without it there is nothing to measure. `OLLM_BENCH_TASKS` says
how many tasks are run, `OLLM_BENCH_LOG` names a file that gets every run as a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from bench.row import Row
from ollm.domain.struct import Data

SECONDS = 900
WINDOW = "4096"

# The same command, but a model's answers are taken as the server gives them.
WITHOUT = """
from ollm.cli.main import run
from ollm.runtime import ladder, model

class Plain(ladder.Ladder):
    async def climb(self):
        async for piece in self._provider.stream(self._request):
            yield piece

model.Ladder = Plain
run()
"""


class Task(Data, frozen=True):
    """`done` looks at the workspace and at what was answered."""

    name: str
    asked: str
    files: Mapping[str, str]
    done: Callable[[Path, str], bool]


class Run(Data, frozen=True):
    task: str
    ladder: bool
    finished: bool
    steps: int
    calls: tuple[str, ...]
    reason: str
    seconds: float


def holds(path: str, *texts: str) -> Callable[[Path, str], bool]:
    def look(workspace: Path, _answer: str) -> bool:
        file = workspace / path
        return file.is_file() and all(text in file.read_text(encoding="utf-8") for text in texts)

    return look


def says(*texts: str) -> Callable[[Path, str], bool]:
    return lambda _workspace, answer: all(text in answer for text in texts)


TEST = "from add import add\n\nassert add(2, 3) == 5\n"
TASKS = (
    Task(
        name="find a string and say the file",
        asked="Which file contains the text SECRET_PORT? Say its name.",
        files={"one.py": "a = 1\n", "two.py": "SECRET_PORT = 9\n"},
        done=says("two.py"),
    ),
    Task(
        name="read a value",
        asked="Read config.ini and say the port.",
        files={"config.ini": "[server]\nport = 8471\n"},
        done=says("8471"),
    ),
    Task(
        name="create a file",
        asked="Create notes.txt with the text hello world.",
        files={"a.py": "a = 1\n"},
        done=holds("notes.txt", "hello world"),
    ),
    Task(
        name="change a value",
        asked="In config.ini change the port from 80 to 8080.",
        files={"config.ini": "[server]\nport = 80\n"},
        done=holds("config.ini", "port = 8080"),
    ),
    Task(
        name="add a line to a config",
        asked="Add the line debug = true at the end of config.ini.",
        files={"config.ini": "[server]\nport = 80\n"},
        done=holds("config.ini", "port = 80", "debug = true"),
    ),
    Task(
        name="fix a failing one-line test",
        asked="python test_add.py fails. Fix the function in add.py.",
        files={"add.py": "def add(a, b):\n    return a - b\n", "test_add.py": TEST},
        done=holds("add.py", "a + b"),
    ),
    Task(
        name="run a command",
        asked="Run python main.py and say what it prints.",
        files={"main.py": "print(6 * 7 * 100)\n"},
        done=says("4200"),
    ),
    Task(
        name="fix a typo",
        asked="Fix the typo recieve in README.md; it should be receive.",
        files={"README.md": "You will recieve mail.\n"},
        done=holds("README.md", "You will receive mail."),
    ),
    Task(
        name="rename a function in two files",
        asked="Rename the function foo to bar in one.py and in two.py.",
        files={"one.py": "def foo():\n    return 1\n", "two.py": "from one import foo\n\nprint(foo())\n"},
        done=lambda workspace, _: (
            holds("one.py", "def bar")(workspace, "") and holds("two.py", "import bar", "print(bar())")(workspace, "")
        ),
    ),
    Task(
        name="count lines",
        asked="How many lines has data.txt? Use a tool.",
        files={"data.txt": "x\n" * 37},
        done=says("37"),
    ),
)


def run(task: Task, *, ladder: bool) -> Run:
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place) / "project"
        workspace.mkdir()
        for name, text in task.files.items():
            (workspace / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, "OLLM_HOME": str(Path(place) / "home"), "OLLM_CONTEXT_WINDOW": WINDOW}
        start = [sys.executable, "-m", "ollm"] if ladder else [sys.executable, "-c", WITHOUT]
        begin = time.monotonic()
        answer = _answered([*start, "-p", task.asked, "--mode", "code", "-o", "json", "--yes"], workspace, environment)
        calls = tuple(call["name"] for call in answer.get("toolCalls", ()))
        return Run(
            task=task.name,
            ladder=ladder,
            finished=task.done(workspace, answer.get("text", "")),
            steps=len(calls) + 1,
            calls=calls,
            reason=answer.get("reason", "timeout"),
            seconds=round(time.monotonic() - begin, 1),
        )


def _answered(
    command: list[str], workspace: Path, environment: Mapping[str, str]
) -> dict[str, object] | dict[str, str]:
    try:
        done = subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
        found: dict[str, str] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return {}
    return found


def rows() -> Iterator[Row]:
    if not os.environ.get("OLLM_BASE_URL"):
        return
    tasks = TASKS[: int(os.environ.get("OLLM_BENCH_TASKS", len(TASKS)))]
    runs = [kept(run(task, ladder=ladder)) for task in tasks for ladder in (True, False)]
    model = os.environ.get("OLLM_MODEL", "default")
    ours, plain = ([each for each in runs if each.ladder is ladder] for ladder in (True, False))
    note = f"{len(tasks)} tasks, baseline: without the ladder"
    yield Row(f"{model}: tasks not finished", _open(ours), _open(plain), unit="tasks", note=note)
    yield Row(f"{model}: steps a task took", _steps(ours), _steps(plain), unit="steps", note=note)


def kept(found: Run) -> Run:
    if log := os.environ.get("OLLM_BENCH_LOG"):
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(msgspec.json.encode(found).decode() + "\n")
    return found


def _open(runs: list[Run]) -> float:
    return float(sum(not each.finished for each in runs))


def _steps(runs: list[Run]) -> float:
    return sum(each.steps for each in runs) / max(1, len(runs))
