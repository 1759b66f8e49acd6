"""The chat screen in this process: typed at through a pipe, read from a terminal of bytes."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import open_conversation
from ollm.cli.screen import screen as module
from ollm.cli.screen.application import create_chat_screen
from ollm.cli.screen.screen import ChatScreen
from ollm.cli.screen.themes import ScreenOptions
from ollm.config.settings import ScreenSettings
from ollm.runtime.base import CommandReply, ConversationOptions
from tests.cli.screen.inside import DrawnScreen, drawn_screen, point_at
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATIENCE = 60.0
WRITE = Answer(calls=[("write_file", {"path": "new.txt", "content": "x\n"})])


class Open:
    def __init__(self, screen: ChatScreen, drawn: DrawnScreen, server: ScriptedServer, workspace: Path) -> None:
        self.screen, self.drawn, self.server, self.workspace = screen, drawn, server, workspace

    def type(self, text: str) -> None:
        self.drawn.type(text)

    async def wait_for(self, *wanted: str, gone: str = "\0") -> None:
        await self.drawn.wait_for(*wanted, gone=gone)

    async def wait_armed(self) -> None:
        """Until the next key answers."""
        async with asyncio.timeout(PATIENCE):
            while not self.screen.questions.takes_keys:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def open_screen(
    directory: Path, patch: pytest.MonkeyPatch, *script: Answer | str, **look: Any
) -> AsyncIterator[Open]:
    async with ScriptedServer(script) as server, drawn_screen(patch) as drawn:
        workspace = point_at(patch, directory, server)
        options = ScreenOptions(
            history=directory / "history", workspace=workspace, settings=ScreenSettings(theme="plain", **look)
        )

        async def pick_session(_current: str | None) -> CommandReply | None:
            return None

        screen = create_chat_screen(options, lambda _typed: [], pick_session)
        found = Open(screen, drawn, server, workspace)
        conversation = ConversationOptions(workspace=workspace, interactive=True)
        running = asyncio.ensure_future(screen.run(lambda: open_conversation(conversation)))
        try:
            await found.wait_for("code·ask")
            yield found
        finally:
            screen.leave()
            await asyncio.wait_for(running, PATIENCE)


def count_bells(chat: Open) -> int:
    """A title ends with the same byte and is none."""
    return re.sub(rb"\x1b\]2;[^\x07]*\x07", b"", chat.drawn.written.getvalue()).count(b"\x07")


@pytest.mark.parametrize(("bell", "limit", "rings"), [(True, 600.0, 0), (True, -1.0, 1), (False, -1.0, 0)])
async def test_a_long_turn_rings_when_it_is_over_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bell: bool, limit: float, rings: int
) -> None:
    monkeypatch.setattr(module, "LONG_TURN_SECONDS", limit)
    async with open_screen(tmp_path, monkeypatch, "Done.", bell=bell) as chat:
        chat.type("hi\r")
        await chat.wait_for("● Done.")
        async with asyncio.timeout(PATIENCE):
            while chat.screen.chat.busy:
                await asyncio.sleep(0.02)

    assert count_bells(chat) == rings


async def test_a_theme_colours_a_screen_that_began_without_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, "Done.") as chat:
        chat.type("/theme dark\r")
        await chat.wait_for("screen.theme is dark now")
        chat.type("hi\r")
        await chat.wait_for("● Done.")

    assert "\x1b[36m● " in chat.drawn.written.getvalue().decode()


async def test_a_refusal_takes_a_reason_and_what_was_typed_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, WRITE, "Then not.") as chat:
        chat.type("write it\r")
        await chat.wait_armed()
        chat.screen.buffer.text = "draft"
        await chat.wait_armed()
        chat.type("\x1b[B" * 6 + "\r")
        await chat.wait_for("reason:", "Reason (optional)")
        assert chat.screen.buffer.text == ""
        chat.type("\x1b")
        await chat.wait_for("› draft")
        await chat.wait_armed()
        chat.type("\x1b[B" * 6 + "\r")
        await chat.wait_for("reason:")
        chat.type("use tabs\r")
        await chat.wait_for("● Then not.", "› draft")

    assert "use tabs" in str(chat.server.chats[1]["messages"])
    assert not (chat.workspace / "new.txt").exists()


async def test_a_command_that_may_run_during_a_turn_does_and_an_answer_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, Answer(text="héllo", delay=2.0)) as chat:
        (chat.workspace / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        chat.type("see @p.png\r\r")
        await chat.wait_for("▣ p.png", "Esc stops")
        chat.type("/status\r")
        await chat.wait_for("approval: ask")
        assert "● h" not in chat.drawn.text()
        await chat.wait_for("● héllo")
        chat.type("/copy\r")
        await chat.wait_for("Copied 5 characters.")

    assert b"\x1b]52;c;aMOpbGxv\x07" in chat.drawn.written.getvalue()
    assert chat.screen.left
