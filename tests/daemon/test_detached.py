"""Turns that run on without a terminal: `ollm -p --detach`, and `ollm sessions attach`."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.terminal import CTRL_D, at_terminal
from tests.daemon.running import WRITE, Daemon, daemon


async def run(found: Daemon, *words: str, code: int = 0) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ollm", *words),
        env=found.environment,
        cwd=found.workspace,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == code, (out, err)
    return (out if code == 0 else err).decode()


async def test_a_detached_turn_goes_on_and_its_question_waits(tmp_path: Path) -> None:
    async with daemon(tmp_path, [WRITE, WRITE, "Written.", "Other."]) as found:
        (found.workspace / "notes.txt").write_text("a note")
        session, other = [(await run(found, "-p", "write it @notes.txt", "--detach")).strip() for _ in range(2)]
        assert session != other
        while True:
            listed = (await found.ask("GET", "/sessions?status=active")).json
            if [line["questions"] for line in listed] == [1, 1]:
                break
            await asyncio.sleep(0.05)
        assert {line["sessionId"] for line in listed} == {session, other}, "it runs beside the other"
        assert all(line["origin"] != "one-shot" for line in listed)
        assert "a note" in str(found.server.chats[0])
        place: Any = SimpleNamespace(workspace=tmp_path, environment=lambda: found.environment)
        async with at_terminal(place, "sessions", "attach", session[:8]) as terminal:
            await terminal.wait_for("Create new.txt", "[y] yes")
            terminal.type("y")
            await terminal.wait_for("Written.")
            terminal.type(CTRL_D)
            await terminal.ended()
        assert (found.workspace / "new.txt").read_text() == "x"
        listed = (await found.ask("GET", "/sessions?status=active")).json
        assert [line["sessionId"] for line in listed] == [other, session], "what waits for an answer is first"
        shown = json.loads(await run(found, "sessions", "list", "--json"))
        assert [(line["sessionId"], line["questions"]) for line in shown] == [(other, 1), (session, 0)]
        assert "  ? " in (await run(found, "sessions", "list")).splitlines()[1]
        await found.ask("POST", "/sessions", {"workspacePath": str(found.workspace)})
        async with at_terminal(place, "chat", "--workspace", str(found.workspace), "--resume") as terminal:
            await terminal.wait_for("? write it")  # A session that waits goes on when another is opened.
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_only_a_plain_prompt_is_detached(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        assert "--detach needs -p" in await run(found, "-p", "hi", "--detach", "--check", "true", code=2)


TELL = """#!/bin/sh
cat >> "$HOME/told"
echo >> "$HOME/told"
"""


@pytest.mark.parametrize("contents", [False, True])
async def test_a_program_of_the_user_is_told_of_questions_and_ends(tmp_path: Path, contents: bool) -> None:
    program, told = tmp_path / "tell; touch pwned", tmp_path / "told"
    program.write_text(TELL)
    program.chmod(0o755)
    (tmp_path / ".ollm").mkdir(mode=0o700)
    settings = {"notify": {"command": [str(program), "$(touch pwned)"], "contents": contents}}
    (tmp_path / ".ollm" / "config.yaml").write_text(json.dumps(settings))
    async with daemon(tmp_path, [WRITE, "Written."]) as found:
        session = (await run(found, "-p", "write it", "--detach")).strip()
        lines: list[str] = []
        while len(lines) < 2:
            await asyncio.sleep(0.05)
            lines = told.read_text().splitlines() if told.exists() else []
            for question in (await found.ask("GET", f"/sessions/{session}/status")).json["questions"]:
                answer = f"/sessions/{session}/confirmations/{question['correlationId']}"
                await found.ask("POST", answer, {"approved": True})
        asks, ended = sorted(map(json.loads, lines), key=lambda one: str(one["event"]))
    assert asks["sessionId"] == ended["sessionId"] == session
    assert (asks["event"], asks["tool"], ended["event"], ended["reason"]) == ("asks", "write_file", "ended", "answered")
    assert ("new.txt" in lines[0]) is contents, "what it asks about is told only if that is set"
    assert not list(tmp_path.rglob("pwned"))
