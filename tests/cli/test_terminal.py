"""`ollm chat` on a terminal that can do no more than lines, in this process; and what is decided before it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app import ProcessScope
from ollm.cli.start import ChatArguments
from ollm.cli.terminal import (
    Terminal,
    load_screen_settings,
)
from tests.cli.screen.inside import point_at
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATIENCE = 60.0


def test_the_settings_of_the_screen_are_read_where_a_file_speaks_of_it(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    home = tmp_path / "home"
    home.mkdir()

    def load() -> tuple[str, bool, bool]:
        found = load_screen_settings(ProcessScope({"OLLM_HOME": str(home)}, workspace=workspace))
        return found.keys, found.bell, found.plain

    usual = load()
    (home / "config.yaml").write_text("provider: {model: m}\n")
    assert load() == usual
    (home / "config.yaml").write_text("screen: {keys: vi, bell: false, plain: true}\n")
    assert load() == ("vi", False, True)


class Lines:
    """A chat of plain lines whose standard input is ours."""

    def __init__(self, terminal: Terminal, feed: int, captured: pytest.CaptureFixture[str]) -> None:
        self._feed = feed
        self._captured = captured
        self.said = ""
        self.errors = ""
        self.running = asyncio.ensure_future(terminal.run())

    def type(self, text: str) -> None:
        os.write(self._feed, text.encode())

    def listen(self) -> str:
        out, errors = self._captured.readouterr()
        self.said += out
        self.errors += errors
        return self.said

    async def wait_for(self, wanted: str, count: int = 1) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while self.listen().count(wanted) < count:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"waited for {wanted!r}, heard:\n{self.said}\n{self.errors}") from None

    async def end(self) -> int:
        code = await asyncio.wait_for(self.running, PATIENCE)
        self.listen()
        return code


@asynccontextmanager
async def lines(
    directory: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str], server: Any, **more: Any
) -> AsyncIterator[Lines]:
    workspace = directory / "project"
    if not workspace.exists():
        point_at(patch, directory, server)
    patch.setenv("OLLM_PLAIN", "1")
    reading, feed = os.pipe()
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        start = ChatArguments(workspace=workspace, **more)
        chat = Lines(Terminal(ProcessScope(workspace=workspace), start), feed, captured)
        try:
            yield chat
        finally:
            if not chat.running.done():
                chat.running.cancel()
                await asyncio.wait([chat.running])
    finally:
        os.dup2(kept, 0)
        for end in (kept, reading, feed):
            os.close(end)


async def test_a_chat_of_lines_answers_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(["Hello there."]) as server, lines(tmp_path, monkeypatch, capsys, server) as chat:
        await chat.wait_for("scripted · 4,096-token context · /help for commands, Ctrl-D to quit\n> ")
        chat.type("hi\n")
        await chat.wait_for("Hello there.\n")
        chat.type("/quit\n")

        assert await chat.end() == 0
        assert "Resume with: ollm -r " in chat.said
        assert "--daemon" not in chat.said


async def test_a_first_message_is_sent_without_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(["One.", "Two."]) as server:
        async with lines(tmp_path, monkeypatch, capsys, server, text="first") as chat:
            await chat.wait_for("One.\n")
            chat.type("/quit\n")
            assert await chat.end() == 0
        async with lines(tmp_path, monkeypatch, capsys, server, text="second") as chat:
            await chat.wait_for("Two.\n")
            chat.type("/quit\n")
            await chat.end()

    assert "Sessions of this workspace" not in chat.said
    assert [request["messages"][-1]["content"] for request in server.chats] == ["first", "second"]


async def test_sessions_are_offered_resumed_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(["One.", "Two.", "Three."]) as server:
        async with lines(tmp_path, monkeypatch, capsys, server, text="first") as chat:
            await chat.wait_for("One.\n")
            chat.type("/quit\n")
            await chat.end()
        async with lines(tmp_path, monkeypatch, capsys, server) as chat:
            await chat.wait_for("Number to resume")
            chat.type("q\n")
            assert await chat.end() == 0
            assert "Resume with" not in chat.said
        async with lines(tmp_path, monkeypatch, capsys, server) as chat:
            await chat.wait_for("Number to resume")
            chat.type("1\n")
            await chat.wait_for("> first\nOne.\n")
            chat.type("go on\n")
            await chat.wait_for("Two.\n")
            chat.type("/new\n")
            await chat.wait_for("/help for commands", 2)
            chat.type("fresh\n")
            await chat.wait_for("Three.\n")
            chat.type("/quit\n")
            await chat.end()
        async with lines(tmp_path, monkeypatch, capsys, server) as chat:
            await chat.wait_for("2. ")
            chat.type("something new\n")
            await chat.wait_for("> ")
            chat.running.cancel()

    assert [len(request["messages"]) for request in server.chats[:3]] == [2, 4, 2]


async def test_with_new_nothing_is_offered_and_with_pick_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(["One."]) as server:
        async with lines(tmp_path, monkeypatch, capsys, server, text="first") as chat:
            await chat.wait_for("One.\n")
            chat.type("/quit\n")
            await chat.end()
        async with lines(tmp_path, monkeypatch, capsys, server, new=True) as chat:
            await chat.wait_for("/help for commands")
            chat.type("/quit\n")
            await chat.end()
            assert "Sessions of this workspace" not in chat.said
        async with lines(tmp_path, monkeypatch, capsys, server, new=True, pick=True) as chat:
            await chat.wait_for("Sessions of this workspace")
            chat.type("q\n")
            await chat.end()
        async with lines(tmp_path, monkeypatch, capsys, server, continue_=True) as chat:
            await chat.wait_for("> first\nOne.\n")
            chat.type("/quit\n")
            await chat.end()
            assert "Sessions of this workspace" not in chat.said


async def test_a_question_is_answered_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Answer(calls=[("write_file", {"path": "new.txt", "content": "x\n"})])
    async with ScriptedServer([write, "Not then.", write, "Done."]) as server:
        async with lines(tmp_path, monkeypatch, capsys, server) as chat:
            await chat.wait_for("/help for commands")
            chat.type("write\n")
            await chat.wait_for("or type a reason to refuse: ")
            chat.type("use tabs\n")
            await chat.wait_for("Not then.\n")
            assert not (tmp_path / "project" / "new.txt").exists()
            assert "use tabs" in str(server.chats[1]["messages"])
            chat.type("write\n")
            await chat.wait_for("or type a reason to refuse: ", 2)
            chat.type("y\n")
            await chat.wait_for("Done.\n")
            assert (tmp_path / "project" / "new.txt").exists()
            chat.type("/quit\n")
            await chat.end()
