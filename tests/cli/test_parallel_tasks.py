"""Tasks side by side, through the command and the chat, with a server that runs several requests at a time."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, ESCAPE, at_terminal
from tests.cli.test_tasks import by_origin
from tests.servers.answers import Answer, Request

TASKS = ("Where is pay?", "Where is refund?")


def script(*answers: Answer, last: str = "Both found.") -> Callable[[Request], Answer]:
    """The parent calls the tasks at once; each task gets its answer, and the parent the last one."""

    def answer(request: Request) -> Answer:
        asked = request.body["messages"][1]["content"]
        for prompt, each in zip(TASKS, answers, strict=True):
            if prompt in asked:
                return each
        if any(message["role"] == "tool" for message in request.body["messages"]):
            return Answer(text=last)
        return Answer(calls=[("task", {"prompt": prompt}) for prompt in TASKS])

    return answer


def list_results(runner: Runner) -> list[str]:
    return [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "tool"]


async def test_tasks_of_one_answer_run_at_once_and_report_in_order(tmp_path: Path) -> None:
    answers = Answer(text="At cart.py:1.", together=2, delay=1), Answer(text="At cart.py:9.", together=2)
    async with running(tmp_path, script(*answers), kind="llama.cpp", slots=2) as runner:
        done = await runner.run("-p", "where?", "-o", "json")

        answer = json.loads(done.out)
        assert (done.code, answer["text"]) == (0, "Both found.")
        assert list_results(runner) == ["At cart.py:1.", "At cart.py:9."], "though the second ended first"
        assert [call["args"]["prompt"] for call in answer["toolCalls"]] == list(TASKS)
        assert answer["usage"]["promptTokens"] == 80, "all four requests"
        (parent,), children = by_origin(runner, "one-shot"), by_origin(runner, "task")
        assert {child["metadata"]["parent"]["callId"] for child in children} == {"c1", "c2"}
        assert [call["status"] for call in parent["toolCalls"]] == ["ok", "ok"]


async def test_one_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    failing = Answer(status=400, body={"error": {"message": "no such thing"}})
    async with running(tmp_path, script(failing, Answer(text="At cart.py:9.", delay=1))) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("tools: {task: {parallel: 2}}\n")

        done = await runner.run("-p", "where?")

        failed, found = list_results(runner)
        assert (done.out, found) == ("Both found.\n", "At cart.py:9.")
        assert failed.startswith("Error Interrupted: The task ended early: ")
        assert f"Task: {TASKS[0]}: The task ended early" in done.err, "which of them it was"


@pytest.mark.parametrize(("kind", "most"), [("llama.cpp", 1), ("other", 1), ("vllm", 2)])
async def test_without_slots_tasks_take_turns(tmp_path: Path, kind: str, most: int) -> None:
    async with running(tmp_path, script(Answer(text="One.", delay=0.5), Answer(text="Two.")), kind=kind) as runner:
        assert (await runner.run("-p", "where?")).out == "Both found.\n"
        assert list_results(runner) == ["One.", "Two."]
        assert runner.server.most_open_chats == most


async def test_the_screen_shows_each_task_and_escape_stops_all(tmp_path: Path) -> None:
    late = Answer(text="late", stall_after=0)

    def answer(request: Request) -> Answer:
        if any(message["role"] == "tool" for message in request.body["messages"]):
            return late
        at = "a.txt" if TASKS[0] in request.body["messages"][1]["content"] else "b.txt"
        return script(*[Answer(calls=[("read_file", {"path": at})])] * 2)(request)

    async with running(tmp_path, answer, kind="llama.cpp", slots=4) as runner:
        async with at_terminal(runner, "chat", size=(90, 30)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("where?" + ENTER)
            await terminal.wait_for(f"Task: {TASKS[0]}", "│ Read a.txt", f"Task: {TASKS[1]}", "│ Read b.txt")
            terminal.type(ESCAPE)
            await terminal.wait_for("stopped", gone="Esc stops")
        assert [call["status"] for call in by_origin(runner, "task")[0]["toolCalls"]] == ["failed"]
        (parent,) = [session for session in runner.sessions() if session["metadata"]["origin"] != "task"]
        assert [call["status"] for call in parent["toolCalls"]] == ["cancelled", "cancelled"]


async def test_questions_come_one_at_a_time_and_name_their_task(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")

    def answer(request: Request) -> Answer:
        read = Answer(calls=[("read_file", {"path": str(outside)})], together=2)
        over = request.body["messages"][-1]["role"] == "tool"
        return script(*[Answer(text="Read.")] * 2 if over else [read] * 2)(request)

    async with running(tmp_path, answer, kind="llama.cpp", slots=2) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("tools: {task: {maxSeconds: 10}}\n")
        async with at_terminal(runner, "chat", size=(100, 30)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("where?" + ENTER)
            await terminal.wait_for("· Task: Where is ", "[y] yes")
            _, second = TASKS if TASKS[0] in terminal.screen() else reversed(TASKS)
            assert second not in terminal.screen()
            await asyncio.sleep(11)  # the tasks have 10 seconds, but not for the person
            terminal.type("y")
            await terminal.wait_for(f"· Task: {second}", "[y] yes")
            terminal.type("y")
            await terminal.wait_for("Both found.")
        assert [result.partition("\n")[0] for result in list_results(runner)] == ["Read.", "Read."]


async def test_after_a_kill_every_message_of_each_task_is_there(tmp_path: Path) -> None:
    late = Answer(text="late", together=2, stall_after=0)
    async with running(tmp_path, script(late, late, last="Going on."), kind="llama.cpp", slots=2) as runner:
        process = await runner.start("-p", "where?")
        async with asyncio.timeout(60):
            while runner.server.open_chats < 2:
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        async with asyncio.timeout(30):
            await process.wait()

        done = await runner.run("-p", "go on", "--continue")

        assert done.out == "Going on.\n"
        viewed = [(await runner.run("sessions", "view", child["sessionId"])).out for child in by_origin(runner, "task")]
        assert [sum(prompt in shown for shown in viewed) for prompt in TASKS] == [1, 1]
