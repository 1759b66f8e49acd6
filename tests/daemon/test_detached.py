"""Turns that run on without a terminal: `ollm -p --detach`, and `ollm sessions attach`."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


async def test_only_a_plain_prompt_is_detached(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        assert "--detach needs -p" in await run(found, "-p", "hi", "--detach", "--check", "true", code=2)
