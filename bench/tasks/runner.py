"""Run tasks with an agent, several at a time, each in its own folder and home."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from bench.servers import Relay
from bench.tasks.sets import Task

TASK_SECONDS = 600
SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Cell:
    """One cell of the results: agent, server, model, context window, call form, seed and the parts left out."""

    agent: str
    base_url: str
    model: str
    window: int
    form: str
    seed: int
    best_of: int = 1


@dataclass(frozen=True)
class TaskRun:
    """The result of one task. `steps` is 0 if the agent does not report them."""

    set_name: str
    task: str
    kind: str
    finished: bool
    steps: int
    seconds: float
    answer: str
    output: str


@dataclass(frozen=True)
class Start:
    """A command line, its additional environment, and a reader of answer and steps."""

    command: Sequence[str]
    environment: Mapping[str, str]
    read_output: Callable[[str], tuple[str, int]]


def run_tasks(tasks: Sequence[Task], cell: Cell, jobs: int, log: Path | None = None) -> Iterator[TaskRun]:
    """Yield the runs in the order of the tasks; `log` gets a line of JSON for each."""
    with ThreadPoolExecutor(jobs) as pool, tempfile.TemporaryDirectory(prefix="bench-tasks-") as place:
        runs = [pool.submit(run_task, task, cell, Path(place, str(number))) for number, task in enumerate(tasks)]
        for run in runs:
            done = run.result()
            if log:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**asdict(done), **asdict(cell)}, ensure_ascii=False) + "\n")
            yield done


def run_task(task: Task, cell: Cell, place: Path) -> TaskRun:
    folder, home = place / "project", place / "home"
    folder.mkdir(parents=True)
    home.mkdir()
    task.write_files(folder)
    with SeedRelay(cell.base_url, cell.seed) as relay:
        start = start_agent(cell, relay.base_url, task.request, home)
        if cell.form == "probed":
            run_program((sys.executable, "-m", "ollm", "models", "probe"), folder, start.environment)
        if cell.best_of > 1 and task.file_checks:
            start = add_attempts(start, cell.best_of, task, folder, home)
        begin = time.monotonic()
        output = run_program(start.command, folder, start.environment, TASK_SECONDS * cell.best_of)
        seconds = round(time.monotonic() - begin, 1)
    try:
        answer, steps = start.read_output(output)
    except ValueError:
        answer, steps = "", 0
    finished = task.is_finished(folder, answer)
    return TaskRun(task.set_name, task.name, task.kind, finished, steps, seconds, answer, output)


def add_attempts(start: Start, attempts: int, task: Task, folder: Path, home: Path) -> Start:
    """Let ollm try a task several times. What judges the files is the check that chooses an attempt."""
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for words in (("init", "-q"), ("add", "--all"), ("commit", "-q", "-m", "start")):
        subprocess.run((*git, *words), cwd=folder, check=True)
    (home / "config.yaml").write_text(json.dumps({"sandbox": {"readable": [str(SOURCE.parent)]}}), encoding="utf-8")
    judge = (sys.executable, "-m", "bench.tasks", task.set_name, task.name)
    check = shlex.join(("env", f"PYTHONPATH={SOURCE.parent}", *judge))
    return replace(start, command=(*start.command, "--best-of", str(attempts), "--check", check))


def run_program(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float = TASK_SECONDS
) -> str:
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
        try:
            program.wait(seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def start_agent(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    starts = {"ollm": start_ollm, "pi": start_pi, "opencode": start_opencode, "codex": start_codex}
    return starts.get(cell.agent, start_command)(cell, base_url, request, home)


def is_installed(agent: str) -> bool:
    return agent == "ollm" or agent.startswith("command:") or shutil.which(agent) is not None


def start_ollm(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    environment = {
        "OLLM_HOME": str(home),
        "OLLM_BASE_URL": base_url,
        "OLLM_MODEL": cell.model,
        "OLLM_CONTEXT_WINDOW": str(cell.window),
        "PYTHONPATH": str(SOURCE),
    }
    if cell.form not in ("first", "probed"):
        environment["OLLM_CALL_FORM"] = cell.form
    command = (sys.executable, "-m", "ollm", "-p", request, "-o", "json", "--yes")
    return Start(command, environment, read_ollm_output)


def read_ollm_output(output: str) -> tuple[str, int]:
    found: dict[str, Any] = json.loads(output)
    return found.get("text", ""), len(found.get("toolCalls", ())) + 1


def read_plain_output(output: str) -> tuple[str, int]:
    return output, 0


def start_pi(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    model = {"id": cell.model, "contextWindow": cell.window, "maxTokens": cell.window // 4}
    provider = {"baseUrl": f"{base_url}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
    (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")
    command = ("pi", "-p", "--no-session", "--provider", "local", "--model", cell.model, request)
    return Start(command, {"PI_CODING_AGENT_DIR": str(home)}, read_plain_output)


def start_opencode(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    limit = {"context": cell.window, "output": cell.window // 4}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{base_url}/v1", "apiKey": "none"},
        "models": {cell.model: {"limit": limit}},
    }
    settings = {"provider": {"local": provider}, "permission": {"edit": "allow", "bash": "allow"}}
    (home / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    environment = {"OPENCODE_CONFIG": str(home / "opencode.json"), "XDG_DATA_HOME": str(home)}
    command = ("opencode", "run", "--auto", "-m", f"local/{cell.model}", request)
    return Start(command, environment, read_plain_output)


def start_codex(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    settings = (
        f'model = "{cell.model}"\nmodel_provider = "local"\nmodel_context_window = {cell.window}\n\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{base_url}/v1"\nwire_api = "responses"\n'
    )
    (home / "config.toml").write_text(settings, encoding="utf-8")
    command = ("codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", request)
    return Start(command, {"CODEX_HOME": str(home)}, read_plain_output)


def start_command(cell: Cell, base_url: str, request: str, home: Path) -> Start:
    """Start any other agent: the words after `command:`, then the request. The environment names the server."""
    environment = {"BASE": base_url, "MODEL": cell.model, "WINDOW": str(cell.window), "SEED": str(cell.seed)}
    words = shlex.split(cell.agent.removeprefix("command:"))
    return Start((*words, request), {**environment, "HOME": str(home)}, read_plain_output)


class SeedRelay(Relay):
    """Adds a sampling seed to each request of a task, a different one each time."""

    def __init__(self, upstream: str, seed: int) -> None:
        super().__init__(upstream)
        self._numbers = count(seed * 1_000)

    def change_body(self, path: str, body: bytes) -> bytes:
        return add_seed(body, self._numbers)


def add_seed(body: bytes, numbers: Iterator[int]) -> bytes:
    """Add the next seed to a generation request in the form of OpenAI or Ollama."""
    try:
        data = json.loads(body)
    except ValueError:
        return body
    if not isinstance(data, dict) or not {"messages", "prompt", "input"} & data.keys():
        return body
    number = next(numbers)
    data["seed"] = number
    if isinstance(data.get("options"), dict):
        data["options"]["seed"] = number
    return json.dumps(data).encode()
