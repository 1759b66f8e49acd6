"""The task bench: every task can be solved, is not solved by doing nothing, and the runner judges by effect."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import pytest
from bench.tasks import count_finished
from bench.tasks.checks import Outcome, apply_check
from bench.tasks.runner import Cell, SeedRelay, run_tasks, start_agent
from bench.tasks.sets import Task, load_set, set_names

TASKS = [task for name in set_names() for task in load_set(name)]
CELL = Cell(agent="command:sh -c", base_url="http://127.0.0.1:1", model="m", window=8192, form="first", seed=0)


def make_task(name: str, request: str, *checks: dict[str, object]) -> Task:
    return Task("made", name, "small", request, {"a.txt": "a\n"}, checks, "", {})


def test_the_sets_nobody_tuned_to_have_108_tasks() -> None:
    counts = {name: len(load_set(name)) for name in ("held_back", "strangers_second", "guests_second", "all")}

    assert counts == {"held_back": 48, "strangers_second": 36, "guests_second": 24, "all": 108}
    assert len({task.name for task in load_set("all")}) == 108


def test_the_other_sets_stand_beside_them() -> None:
    translated, twins = load_set("translated"), load_set("twins_of_translated")

    assert (len(translated), len(load_set("other_words"))) == (24, 24)
    assert sorted(task.twin for task in translated) == sorted(task.name for task in twins)
    assert sum(task.name.startswith("de ") for task in translated) == 12


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.set_name}: {task.name}")
def test_a_task_is_finished_by_its_solution_alone(task: Task, tmp_path: Path) -> None:
    task.write_files(tmp_path)
    assert not task.is_finished(tmp_path, task.answer if task.solution else "I have looked at it.")

    task.solve(tmp_path)
    assert task.is_finished(tmp_path, task.answer)

    for path in {**task.files, **task.solution}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("[[[ (\n")
    assert not task.is_finished(tmp_path, "Done.")


def test_the_rest_of_a_file_must_survive(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(50))
    check = {"check": "few_changes", "path": "a.txt", "lines": 2}
    outcome = Outcome({"a.txt": text}, tmp_path, "")

    (tmp_path / "a.txt").write_text(text.replace("line 7\n", "line seven\n"))
    assert apply_check(check, outcome)
    (tmp_path / "a.txt").write_text("line seven\n")
    assert not apply_check(check, outcome)


def test_the_runner_gives_each_task_its_own_folder_and_judges_what_was_left(tmp_path: Path) -> None:
    exists = {"check": "equals", "path": "made.txt", "text": "hi"}
    tasks = [
        make_task("made", "echo hi > made.txt; ls", exists),
        make_task("told", "echo the port is 8,471; ls made.txt", {"check": "says", "texts": ["8471"]}),
        make_task("missed", "true", exists),
    ]

    runs = list(run_tasks(tasks, CELL, 2, tmp_path / "log.jsonl"))

    assert [(run.task, run.finished) for run in runs] == [("made", True), ("told", True), ("missed", False)]
    assert count_finished(runs) == ["made small 2 of 3", "total 2 of 3"]
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["task"] for line in logged] == ["made", "told", "missed"]


def test_the_bench_runs_from_the_command_and_prints_what_was_finished() -> None:
    environment = {
        **os.environ,
        "OLLM_BASE_URL": "http://127.0.0.1:1",
        "AGENT": "command:echo Port 5050:",
        "HALF": "held_back",
        "ONLY": "read a",
        "SEEDS": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.tasks"], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-2:] == ["held_back small 1 of 2", "total 1 of 2"]
    assert "seed 1:" in done.stdout


@pytest.mark.parametrize("agent", ["ollm", "pi", "opencode", "codex"])
def test_each_agent_is_pointed_at_the_server_and_the_model(agent: str, tmp_path: Path) -> None:
    cell = Cell(agent=agent, base_url="", model="tiny", window=4096, form="first", seed=0, without="guard,facts")

    start = start_agent(cell, "http://127.0.0.1:9", "Do it.", tmp_path)

    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "Do it." in start.command
    assert "http://127.0.0.1:9" in written + str(start.environment)
    assert "tiny" in written + str(start.environment)
    assert agent != "ollm" or start.environment["OLLM_SMALL_MODELS_WITHOUT"] == "guard,facts"


@pytest.fixture
def echo_url() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.path.encode() + b" " + body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_seed_is_added_to_each_generation_request(echo_url: str) -> None:
    with SeedRelay(echo_url, 3) as relay:
        answers = []
        for body in (b'{"messages": []}', b'{"content": "x"}', b'{"messages": [], "options": {}}'):
            with urlopen(Request(f"{relay.base_url}/chat", data=body)) as answer:
                answers.append(answer.read().decode())

    assert answers == [
        '/v1/chat {"messages": [], "seed": 3000}',
        '/v1/chat {"content": "x"}',
        '/v1/chat {"messages": [], "options": {"seed": 3001}, "seed": 3001}',
    ]
