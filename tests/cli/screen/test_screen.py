"""The chat screen in this process: typed at through a pipe, read from a terminal of bytes."""

import asyncio
import io
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl

from ollm.app import open_conversation
from ollm.cli.screen import screen as module
from ollm.cli.screen.output import open_output
from ollm.cli.screen.screen import ChatScreen, ScreenPrinter
from ollm.cli.screen.themes import ScreenOptions
from ollm.domain.errors import NoServerError
from ollm.runtime.base import CommandReply, ConversationOptions
from tests.cli.screen.inside import DrawnScreen, drawn_screen, point_at
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATIENCE = 60.0
WRITE = Answer(calls=[("write_file", {"path": "new.txt", "content": "x\n"})])


class Open:
    def __init__(self, screen: ChatScreen, drawn: DrawnScreen, server: ScriptedServer, workspace: Path) -> None:
        self.screen, self.drawn, self.server, self.workspace = screen, drawn, server, workspace
        self.picks: list[str | None] = []
        self.result: CommandReply | None = None

    def type(self, text: str) -> None:
        self.drawn.type(text)

    async def wait_for(self, *wanted: str, gone: str = "\0") -> None:
        await self.drawn.wait_for(*wanted, gone=gone)

    async def wait_armed(self) -> None:
        """Until the next key answers."""
        async with asyncio.timeout(PATIENCE):
            while not self.screen.questions.armed:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def open_screen(
    directory: Path, patch: pytest.MonkeyPatch, *script: Answer | str, pick: CommandReply | None = None, **look: Any
) -> AsyncIterator[Open]:
    async with ScriptedServer(script) as server, drawn_screen(patch) as drawn:
        workspace = point_at(patch, directory, server)
        options = ScreenOptions(history=directory / "history", workspace=workspace, colour=False, **look)

        async def pick_session(current: str | None) -> CommandReply | None:
            found.picks.append(current)
            return pick

        screen = ChatScreen(options, lambda _typed: [], pick_session)
        found = Open(screen, drawn, server, workspace)
        conversation = ConversationOptions(workspace=workspace, interactive=True)
        running = asyncio.ensure_future(screen.run(lambda: open_conversation(conversation)))
        try:
            await found.wait_for("code·ask")
            yield found
        finally:
            screen.leave()
            found.result = await asyncio.wait_for(running, PATIENCE)


async def test_a_message_is_answered_and_the_session_is_named_when_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, "Hello there.") as chat:
        chat.type("hi\r")
        await chat.wait_for("› hi", "● Hello there.")
        assert "project" in chat.drawn.written.getvalue().decode()

    assert chat.result == CommandReply(follow_up="exit")
    assert chat.screen.left
    assert "\x1b]2;ollm · " in chat.drawn.written.getvalue().decode()


@pytest.mark.parametrize("word", ["exit", "Quit", ":q"])
async def test_a_word_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    async with open_screen(tmp_path, monkeypatch) as chat:
        chat.type(f"{word}\r")
        async with asyncio.timeout(PATIENCE):
            while chat.screen.app.is_running:
                await asyncio.sleep(0.02)

    assert chat.server.chats == []


async def test_a_question_is_asked_and_answered_by_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch, WRITE, "Written.") as chat:
        chat.type("write it\r")
        await chat.wait_for("new.txt")
        await chat.wait_armed()
        chat.screen.app.output.flush()
        assert count_bells(chat) == 1, "a question rings the bell"
        chat.type("y")
        await chat.wait_for("● Written.")

    assert (chat.workspace / "new.txt").read_text() == "x\n"


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
            while chat.screen.busy:
                await asyncio.sleep(0.02)

    assert count_bells(chat) == rings


async def test_a_refusal_takes_a_reason_and_what_was_typed_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, WRITE, "Then not.") as chat:
        chat.type("write it\r")
        await chat.wait_armed()
        chat.screen.buffer.text = "draft"
        chat.screen.refuse(True)
        await chat.wait_for("reason:", "Reason (optional)")
        assert chat.screen.buffer.text == ""
        chat.screen.refuse(False)
        assert chat.screen.buffer.text == "draft"
        chat.screen.refuse(True)
        chat.type("use tabs\r")
        await chat.wait_for("● Then not.")
        assert chat.screen.buffer.text == "draft"
        assert not chat.screen.refusing

    assert "use tabs" in str(chat.server.chats[1]["messages"])
    assert not (chat.workspace / "new.txt").exists()


async def test_all_edits_may_be_allowed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch, WRITE, "Written.") as chat:
        chat.type("write it\r")
        await chat.wait_armed()
        chat.type("f")
        await chat.wait_for("● Written.", "code·accept-edits")


async def test_escape_stops_the_turn_and_what_waited_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, Answer(text="a b c d", pace=5.0), "Next.") as chat:
        chat.type("go\r")
        await chat.wait_for("● a")
        chat.type("later\r")
        await chat.wait_for("↳ queued: later")
        assert chat.screen.chat.queue == ["later"]
        chat.type("draft")
        await chat.wait_for("› draft")
        chat.screen.stop()
        await chat.wait_for("stopped", gone="queued")

        assert chat.screen.buffer.text == "later\ndraft"
        assert not chat.screen.chat.queue


async def test_what_waits_is_taken_back_from_the_newest_on_while_nothing_else_is_in_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_screen(tmp_path, monkeypatch, Answer(text="a b c d", pace=5.0)) as chat:
        assert not chat.screen.can_take_back
        chat.type("go\r")
        await chat.wait_for("● a")
        chat.screen.submit("one")
        chat.screen.submit("two")
        chat.screen.submit("three")
        chat.screen.take_back_queued()
        assert chat.screen.buffer.text == "three"
        chat.screen.take_back_queued()
        assert chat.screen.buffer.text == "two\nthree"
        assert chat.screen.chat.queue == ["one"]
        chat.screen.buffer.cursor_position -= 1
        assert not chat.screen.can_take_back, "the cursor moves"
        chat.screen.buffer.cursor_position += 1
        assert chat.screen.can_take_back
        chat.screen.buffer.insert_text("!")
        assert not chat.screen.can_take_back, "it was changed"
        chat.screen.stop()
        await chat.wait_for("stopped")


async def test_a_list_of_options_is_chosen_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch) as chat:
        chat.type("/approval\r")
        await chat.wait_for("Choose the approval", "ask ✓")
        assert chat.screen.choosing
        chat.screen.choose(False)
        assert not chat.screen.choosing
        chat.type("/approval\r")
        async with asyncio.timeout(PATIENCE):
            while not chat.screen.choosing:
                await asyncio.sleep(0.02)
        chat.screen.move(1)
        chat.screen.choose(True)
        await chat.wait_for("code·accept-edits")


async def test_a_session_is_chosen_and_the_screen_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = CommandReply(follow_up="open-session", argument="other")
    async with open_screen(tmp_path, monkeypatch, "Hi.", pick=chosen) as chat:
        chat.type("hello\r")
        await chat.wait_for("● Hi.")
        chat.type("/sessions\r")
        async with asyncio.timeout(PATIENCE):
            while chat.screen.app.is_running:
                await asyncio.sleep(0.02)
        assert chat.screen.next == chosen
        assert chat.picks == [chat.screen.left or chat.picks[0]]


async def test_a_text_is_handed_to_the_clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch) as chat:
        chat.screen.copy("héllo")
        await chat.wait_for("Copied 5 characters.")

    assert b"\x1b]52;c;aMOpbGxv\x07" in chat.drawn.written.getvalue()


async def test_a_message_is_gone_back_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch, "Hi.") as chat:
        chat.screen.rewind()
        await chat.wait_for("Nothing to rewind yet.")
        chat.type("remember me\r")
        await chat.wait_for("● Hi.")
        chat.screen.rewind()
        await chat.wait_for("Rewind to before which message?", "#1 remember me")
        chat.screen.choose(False)
        assert not chat.screen.choosing
        chat.screen.rewind()
        async with asyncio.timeout(PATIENCE):
            while not chat.screen.choosing:
                await asyncio.sleep(0.02)
        chat.screen.choose(True)
        await chat.wait_for("Enter rewind · Esc cancel")
        chat.screen.choose(True)
        async with asyncio.timeout(PATIENCE):
            while chat.screen.buffer.text != "remember me":
                await asyncio.sleep(0.02)


async def test_a_conversation_that_cannot_be_opened_ends_the_screen_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with drawn_screen(monkeypatch):
        options = ScreenOptions(history=tmp_path / "history", workspace=tmp_path, colour=False)

        async def pick(_current: str | None) -> CommandReply | None:
            return None

        screen = ChatScreen(options, lambda _typed: [], pick)
        monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("OLLM_BASE_URL", "http://127.0.0.1:9/v1")
        monkeypatch.setenv("OLLM_PROVIDER", "openai")
        monkeypatch.setenv("OLLM_MODEL", "m")
        conversation = ConversationOptions(workspace=tmp_path, interactive=True)
        with pytest.raises(NoServerError):
            await asyncio.wait_for(screen.run(lambda: open_conversation(conversation)), PATIENCE)
    assert screen.left is None


PATIENCE_PRINTING = 30.0


class Press:
    """An application on a terminal of bytes, and what prints above it."""

    def __init__(self, patch: pytest.MonkeyPatch, keys: object) -> None:
        self.written = io.BytesIO()
        patch.setattr(sys, "stdout", io.TextIOWrapper(self.written, encoding="utf-8", write_through=True))
        self.app: Application[None] = Application(
            layout=Layout(Window(BufferControl(Buffer()))),
            input=keys,  # type: ignore[arg-type]
            output=open_output(),
        )
        self.alive = False
        self.drawn = 0
        self.app.after_render += self._count
        self.printer = ScreenPrinter(self.app, lambda: self.alive)

    def _count(self, _app: object) -> None:
        self.drawn += 1

    async def wait_for(self, wanted: bytes) -> None:
        async with asyncio.timeout(PATIENCE_PRINTING):
            while wanted not in self.written.getvalue():
                await asyncio.sleep(0.01)


async def test_what_is_added_is_written_above_with_whole_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        running = [asyncio.ensure_future(press.app.run_async()), asyncio.ensure_future(press.printer.run())]
        press.printer.add("one\n")
        press.printer.add("two\n")
        await press.wait_for(b"one\r\ntwo\r\n")
        drawn = press.drawn
        await asyncio.sleep(1.0)
        assert press.drawn - drawn <= 3, "nothing moves, so nothing is drawn"
        drawn = press.drawn
        press.alive = True
        press.printer.wake()
        async with asyncio.timeout(PATIENCE_PRINTING):
            while press.drawn < drawn + 3:
                await asyncio.sleep(0.01)
        press.app.exit()
        running[1].cancel()
        await asyncio.wait(running)

        assert press.written.getvalue().count(b"one\r\n") == 1


async def test_while_the_terminal_is_lent_nothing_is_written_and_what_waited_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        running = [asyncio.ensure_future(press.app.run_async()), asyncio.ensure_future(press.printer.run())]
        async with asyncio.timeout(PATIENCE_PRINTING):
            while not press.drawn:
                await asyncio.sleep(0.01)
        from prompt_toolkit.application.current import set_app

        with set_app(press.app):
            press.printer.add("before\n")
            async with press.printer.lend_terminal():
                assert b"before\n" in press.written.getvalue()
                press.printer.add("during\n")
                await asyncio.sleep(0.35)
                assert b"during" not in press.written.getvalue()
        await press.wait_for(b"during\r\n")
        press.app.exit()
        running[1].cancel()
        await asyncio.wait(running)


async def test_a_terminal_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError

    with create_pipe_input() as keys:
        press = Press(monkeypatch, keys)
        press.printer.add("nobody reads this")
        monkeypatch.setattr(sys, "stdout", Gone())
        press.printer.flush()
