"""The benches run, compare, and judge their tasks."""

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import bench.__main__ as harness
import bench.compare as comparison
import pytest
from bench.__main__ import discovered, save
from bench.context_chat import CountingRelay, Exchanged, describe_chat, measure_turn, play_turns, write_files
from bench.context_simulation.cost import measure_cost
from bench.context_simulation.server import Heard
from bench.row import Row, program
from bench.tasks import count_finished
from bench.tasks.checks import Outcome, apply_check
from bench.tasks.runner import Cell, SeedRelay, run_tasks, start_agent
from bench.tasks.sets import Task, load_set, set_names

from tests.sizes import size


def test_a_goal_bounds_the_ratio_or_the_figure() -> None:
    assert Row("a", 2.0, 1.0, 2.5).met is True
    assert Row("a", 3.0, 1.0, 2.5).met is False
    assert Row("a", 30.0, 1.0, 40.0, "MB", of="figure").met is True
    assert Row("a", 3.0, None, 2.5).met is False
    assert Row("a", 3.0, 1.0).met is None


def test_every_measurement_is_found_and_an_unknown_one_is_refused() -> None:
    assert {"startup", "one_shot"} <= set(discovered())
    assert "row" not in discovered()

    done = subprocess.run([sys.executable, "-m", "bench", "nosuch"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "startup" in done.stderr


def test_saving_appends_a_table_with_date_and_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "performance.md"
    page.parent.mkdir()
    page.write_text("# Performance\n", encoding="utf-8")
    monkeypatch.setattr(harness, "RESULTS", page)
    monkeypatch.setattr(harness, "HERE", tmp_path / "bench")

    save([Row("quick", 2.0, 1.0, 2.5, "ms")])

    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Performance\n\n## 20")
    assert re.search(r"cores at a load of [0-9.]+, Python 3\.", text)
    assert "| quick | 2 ms | 1 ms | 2.00 × | ≤ 2.5 × | ok |" in text


def test_a_measured_program_may_keep_its_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "helper.py").write_text("")

    program([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import helper"])()

    assert list(tmp_path.glob("__pycache__/helper.*.pyc"))


ANSWER = (
    b'data: {"choices": [{"delta": {"content": "45871"}}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 5000, "completion_tokens": 3}, '
    b'"timings": {"prompt_n": 100, "cache_n": 4900}}\n\ndata: [DONE]\n\n'
)


class Upstream(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


def test_the_relay_passes_on_and_keeps_what_the_server_counted() -> None:
    server = HTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4000}
    with CountingRelay(f"http://127.0.0.1:{server.server_address[1]}/v1") as relay:
        request = urllib.request.Request(f"{relay.base_url}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == ANSWER
    server.shutdown()
    server.server_close()

    [seen] = relay.seen
    assert (seen.prompt_tokens, seen.cached_tokens, seen.answer_tokens) == (5000, 4900, 3)


def test_the_figures_tell_a_sum_over_the_window_a_wrong_answer_and_a_failure() -> None:
    turn = next(turn for turn in play_turns(60) if turn.kind == "ask")
    told = {
        "messages": [{"role": "user", "content": "The staging database listens on port 45871."}],
        "max_tokens": 4000,
    }
    seen = [Exchanged(told, 200, 5000, 4900, 3, 50), Exchanged(told, 200, 9000, 0), Exchanged(told, 400)]
    events = [{"type": "text-delta", "text": "On 5432."}, {"type": "compressed"}]

    figures = measure_turn(turn, seen, events, 8192)

    assert (figures.over, figures.sum_over, figures.refused, figures.compressions) == (1, 2, 1, 1)
    assert (figures.right, figures.visible, figures.ended) == (False, True, "")
    table = "\n".join(describe_chat([figures], 8192))
    assert "facts answered                              0" in table
    assert "35.0%" in table
    assert "read again, × what is new                   182.00" in table


def test_the_price_counts_what_is_read_again_and_summaries_over_what_is_new() -> None:
    def hear(turn: int, pieces: list[str], answer: str, *, summary: bool = False) -> Heard:
        tokens = sum(map(len, pieces))
        messages = [{"role": "tool" if piece.startswith("result") else "user", "content": piece} for piece in pieces]
        return Heard(turn, {"messages": messages}, pieces, tokens, summary, answer=answer)

    heard = [
        hear(1, ["rules", "ask one"], "call"),
        hear(1, ["rules", "ask one", "call", "result"], "answer"),
        hear(2, ["clerk", "what was said"], "minutes", summary=True),
        hear(2, ["rules", "minutes", "ask two"], "done"),
    ]
    cost = measure_cost(heard, {1: "ask one", 2: "ask two"}, LetterTokenizer())

    asked = LetterTokenizer().count("<|im_start|>user\nask two<|im_end|>\n<|im_start|>assistant\n")
    assert cost.new == len("rulesask one") + len("result") + asked
    assert cost.read == len("rulesask one") + len("result") + len("minutesask two")
    assert (cost.summary_read, cost.summary_written) == (len("clerkwhat was said"), len("minutes"))


class LetterTokenizer:
    def count(self, text: str) -> int:
        return len(text)


def test_sixty_turns_ask_for_every_fact_and_begin_with_nothing_done(tmp_path: Path) -> None:
    write_files(tmp_path)
    turns = list(play_turns(60))

    assert [turn.number for turn in turns] == list(range(1, 61))
    assert len({turn.text for turn in turns if turn.kind == "ask"}) >= 14
    assert {turn.kind for turn in turns} == {"tell", "ask", "read", "edit", "output", "talk"}
    assert not any(turn.is_done(tmp_path) for turn in turns if turn.is_done)
    assert (tmp_path / "build.log").stat().st_size >= 50_000


def test_without_a_server_it_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.context_chat"], capture_output=True, text=True, env={"PATH": ""}, check=False
    )

    assert done.returncode == 2
    assert "OLLM_BASE_URL" in done.stderr


SPIN = "end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def make_tree(place: Path, *, seconds: float) -> Path:
    """A tree whose command works for a while and then sleeps, and whose bench is of no use."""
    command = place / ".venv/bin/ollm"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!{sys.executable} -IS\nimport time\n{SPIN.format(seconds=seconds)}time.sleep(0.05)\n")
    command.chmod(0o755)
    return place


def test_the_commands_of_two_trees_are_compared_by_cpu_time(tmp_path: Path) -> None:
    old, new = make_tree(tmp_path / "old", seconds=0.05), make_tree(tmp_path / "new", seconds=0.15)

    figures = comparison.compare(old, new, ["startup"], rounds=2)

    before, after = figures["ollm --help"]
    assert len(before) == len(after) == 2
    assert min(spent.cpu for spent in after) >= 150
    assert min(spent.wall for spent in after) >= 200
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


@pytest.mark.parametrize("name", set_names())
def test_a_task_is_finished_by_its_solution_alone(name: str, tmp_path: Path) -> None:
    for number, task in enumerate(load_set(name)[:: size(4, 1)]):
        directory = tmp_path / str(number)
        directory.mkdir()
        task.write_files(directory)
        assert not task.is_finished(directory, task.answer if task.solution else "I have looked at it."), task.name

        task.solve(directory)
        assert task.is_finished(directory, task.answer), task.name

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
    cell = Cell(agent=agent, base_url="", model="tiny", window=4096, form="first", seed=0)

    start = start_agent(cell, "http://127.0.0.1:9", "Do it.", tmp_path)

    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "Do it." in start.command
    assert "http://127.0.0.1:9" in written + str(start.environment)
    assert "tiny" in written + str(start.environment)


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
