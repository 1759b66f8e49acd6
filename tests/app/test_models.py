"""`ollm models probe`: what is found out about models of every kind, and that the next conversation uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import Answer, Request

VERBATIM = 'if a != "b":\n\tprint(\'it\\n\', {1: "é"})'
Say = Callable[[str, dict[str, Any]], Answer]


def native(name: str, arguments: dict[str, Any]) -> Answer:
    return Answer(calls=[(name, arguments)], prompt_tokens=900)


def fenced(name: str, arguments: dict[str, Any]) -> Answer:
    return Answer(text=f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```", prompt_tokens=900)


def model(
    say: Say, *, takes_results: str = "tool", bears: int = 100, copies: bool = True
) -> Callable[[Request], Answer]:
    """A model that calls as `say` does, takes results in one form only, and errs when it sees too many tools."""

    def answer(request: Request) -> Answer:
        messages, tools = request.body["messages"], request.body.get("tools", ())
        last = messages[-1]["content"]
        if "4711" in last:
            right = messages[-1]["role"] == takes_results
            return Answer(text="The code is 4711.") if right else say("read_file", {"path": "alpha.txt"})
        if "alpha.txt" in last or "gamma.txt" in last:
            path = "alpha.txt" if "alpha" in last else "beta/gamma.txt"
            return say("read_file" if len(tools) <= bears else "shell", {"path": path})
        if "delta.py" in last:
            return say("write_file", {"path": "delta.py", "content": VERBATIM if copies else "pass"})
        return Answer(text="one two three four", prompt_tokens=9000)

    return answer


async def probed(runner: Runner) -> dict[str, Any]:
    done = await runner.run("models", "probe", "--json")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (model(native), {"callForm": "native", "resultForm": "tool", "maxTools": None, "verbatimEdits": True}),
        (model(fenced), {"callForm": "text", "writtenForm": "fence", "resultForm": "tool", "maxTools": None}),
        (model(fenced, takes_results="user", bears=3), {"callForm": "text", "resultForm": "user", "maxTools": 3}),
        (model(native, bears=3, copies=False), {"callForm": "native", "maxTools": 3, "verbatimEdits": False}),
        (lambda request: Answer(text="I cannot."), {"callForm": "none", "maxTools": None}),
    ],
    ids=["native", "text", "results as user messages", "few tools", "no calls"],
)
@covers("T10.1")
async def test_the_card_says_what_the_model_can_do(
    tmp_path: Path, script: Callable[[Request], Answer], expected: dict[str, Any]
) -> None:
    async with running(tmp_path, script) as runner:
        card = await probed(runner)

    assert {key: card["facts"][key] for key in expected} == expected
    assert card["facts"]["probed"].endswith("Z")
    names = ["speed", "calls", "results", "tools", "copying", "window", "forms"]
    assert [trial["name"] for trial in card["trials"]] == names


def answer_in_blocks(request: Request) -> Answer:
    """A model that writes its calls badly and blocks well."""
    last = request.body["messages"][-1]["content"]
    if "Change LIMIT" in last and not request.body.get("tools"):
        return Answer(text='conf.py\n```\nDEBUG = False\nNAME = "x"\nLIMIT = 20\n```', prompt_tokens=900)
    if "Delete the file" in last:
        return Answer(text="```bash\nrm old.txt\n```", prompt_tokens=900)
    return Answer(text="I would look for it.", prompt_tokens=900)


async def test_the_forms_are_compared_on_tiny_tasks_and_the_better_one_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, answer_in_blocks) as runner:
        card = await probed(runner)
        done = await runner.run("doctor")

    (told,) = [trial["told"] for trial in card["trials"] if trial["name"] == "forms"]
    assert "blocks 2 of 3" in told
    assert card["facts"]["callForm"] == "blocks"
    assert "in blocks" in done.out


async def test_what_was_found_is_kept_shown_by_the_doctor_and_used(tmp_path: Path) -> None:
    async with running(tmp_path, model(fenced, takes_results="user", bears=3)) as runner:
        await probed(runner)
        doctor = await runner.run("doctor")
        await runner.run("-p", "hello")

    assert "written as text" in doctor.out
    assert "results are sent as user messages" in doctor.out
    assert "tok/s" in doctor.out
    shown = [tool["function"]["name"] for tool in runner.server.chats[-1]["tools"]]
    assert shown == ["answer", "edit_file", "read_file", "write_file"]  # three, and to speak


async def test_the_card_is_a_table_for_people(tmp_path: Path) -> None:
    async with running(tmp_path, model(native)) as runner:
        done = await runner.run("models", "probe", "scripted")

    lines = done.out.splitlines()
    assert lines[0].startswith("scripted, probed 2")
    assert lines[1].split() == ["TRIAL", "FOUND", "SECONDS"]
    assert any(line.startswith("calls") and "native" in line for line in lines)
    assert "calls: native" in done.err
