"""The chat screen in this process: typed at through a pipe, read from a terminal of bytes."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm.app import open_conversation
from ollm.cli.screen import screen as module
from ollm.cli.screen.screen import ChatScreen
from ollm.cli.screen.screen_options import ScreenOptions
from ollm.domain.errors import NoServerError
from ollm.runtime.base import CommandReply
from ollm.runtime.conversation_options import ConversationOptions
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


async def test_the_approval_level_goes_round_without_yolo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch) as chat:
        for level in ("accept-edits", "read-only", "ask"):
            chat.type("\x1b[Z")
            await chat.wait_for(f"code·{level}")
        chat.screen._view.status = None
        chat.screen.cycle_approval()
        await chat.wait_for("code·ask")


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


async def test_no_choice_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch, "Hi.") as chat:
        await chat.screen.pick_session()
        chat.type("hello\r")
        await chat.wait_for("● Hi.")
        assert len(chat.picks) == 1


async def test_a_hint_is_there_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen(tmp_path, monkeypatch) as chat:
        chat.screen.show_hint("Just so you know", 0.3)
        assert chat.screen._view.render_question() == [("class:hint", "Just so you know")]
        async with asyncio.timeout(PATIENCE):
            while chat.screen._view.hint:
                await asyncio.sleep(0.02)
        await chat.wait_for(gone="Just so you know")


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
