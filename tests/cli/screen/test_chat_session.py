"""Between the screen and the conversation: what was typed is sent in order, and events come back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from ollm.app import open_conversation
from ollm.cli.screen.chat_session import ConversationRunner
from ollm.cli.screen.composing import Pastes
from ollm.cli.screen.themes import ScreenOptions
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import AnyEvent, TextDelta
from ollm.runtime.base import CommandReply, ConversationOptions, Status
from tests.cli.screen.inside import point_at
from tests.cli.screen.samples import PLAIN
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

PATIENCE = 60.0


class NotedDisplay:
    """A display that notes what is done to it."""

    def __init__(self, workspace: Path) -> None:
        self.options = ScreenOptions(history=workspace / "h", workspace=workspace)
        self.painter = PLAIN
        self.pastes = Pastes()
        self.transcript = Transcript(PLAIN, self.print)
        self.printed = ""
        self.turns: list[str] = []
        self.answer = ""
        self.statuses: list[Status] = []
        self.replies: list[CommandReply] = []
        self.picked = 0
        self.offered: list[tuple[str, dict[str, str], str]] = []
        self.copied: list[str] = []

    def print(self, text: str) -> None:
        self.printed += text

    def begin_turn(self) -> None:
        self.turns.append("begin")

    def handle_event(self, event: AnyEvent) -> None:
        if isinstance(event, TextDelta):
            self.answer += event.text

    def end_turn(self) -> None:
        self.turns.append("end")

    def refresh(self, status: Status) -> None:
        self.statuses.append(status)

    def exit(self, reply: CommandReply) -> None:
        self.replies.append(reply)

    async def pick_session(self) -> None:
        self.picked += 1

    def offer_options(self, name: str, options: dict[str, str], current: str) -> None:
        self.offered.append((name, options, current))

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def lend_terminal(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class Chat:
    def __init__(self, runner: ConversationRunner, display: NotedDisplay, server: ScriptedServer) -> None:
        self.runner, self.display, self.server = runner, display, server

    async def wait_until(self, met: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not met():
                await asyncio.sleep(0.01)

    async def say(self, text: str) -> None:
        """Send it and wait until it is done."""
        done = len(self.display.statuses)
        self.runner.submit(text)
        await self.wait_until(lambda: len(self.display.statuses) > done and not self.runner.busy)


@asynccontextmanager
async def chatting(
    directory: Path, patch: pytest.MonkeyPatch, *script: Answer | str, **options: Any
) -> AsyncIterator[Chat]:
    async with ScriptedServer(script) as server:
        workspace = point_at(patch, directory, server)
        display = NotedDisplay(workspace)
        runner = ConversationRunner(display)
        wanted = ConversationOptions(workspace=workspace, interactive=True, **options)
        running = asyncio.ensure_future(runner.run(lambda: open_conversation(wanted)))
        chat = Chat(runner, display, server)
        try:
            await chat.wait_until(lambda: "permissions" in runner.commands or running.done())
            await asyncio.sleep(0)
            yield chat
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_what_is_typed_meanwhile_waits_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, Answer(text="one ", delay=0.3), "two") as chat:
        chat.runner.submit("first")
        await chat.wait_until(lambda: chat.runner.busy)
        await chat.say("second")

        assert chat.display.answer == "one two"
        assert [request["messages"][-1]["content"] for request in chat.server.chats] == ["first", "second"]


async def test_a_slash_runs_a_command_and_two_are_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, "Fine.") as chat:
        await chat.say("/status")
        assert "session: not started" in chat.display.printed
        await chat.say("//etc is a path")
        assert chat.server.chats[0]["messages"][-1]["content"] == "/etc is a path"
        await chat.say("/nonsense")
        assert "Unknown command /nonsense" in chat.display.printed


async def test_commands_that_the_screen_shows_its_own_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, "Copy me.") as chat:
        await chat.say("/sessions")
        await chat.say("/resume")
        assert chat.display.picked == 2
        await chat.say("/approval")
        ((name, options, current),) = chat.display.offered
        assert (name, current) == ("approval", "ask")
        assert {"ask", "read-only"} <= set(options)
        assert options["yolo"] == "nothing asks except protected files"
        await chat.say("/approval read-only")
        assert chat.display.statuses[-1].approval == "read-only"
        await chat.say("hi")
        await chat.say("/copy")
        assert chat.display.copied == ["Copy me."]
        assert "Copy me." not in chat.display.printed
        await chat.say("/new")
        assert [reply.follow_up for reply in chat.display.replies] == ["new-session"]


async def test_a_command_that_may_run_during_a_turn_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, Answer(text="slow", delay=1.0)) as chat:
        assert not chat.runner.can_run_now("/status")
        chat.runner.submit("hi")
        await chat.wait_until(lambda: chat.runner.busy)
        quick = [name for name, (_, now) in chat.runner.commands.items() if now]
        slow = [name for name, (_, now) in chat.runner.commands.items() if not now]
        assert chat.runner.can_run_now(f"/{quick[0]}")
        assert chat.runner.can_run_now(f"/{quick[0]} argument")
        assert not chat.runner.can_run_now(f"/{slow[0]}")
        assert not chat.runner.can_run_now(quick[0])
        await chat.runner.run_now("/status")
        assert "› /status" in chat.display.printed
        assert "approval" in chat.display.printed
        await chat.wait_until(lambda: not chat.runner.busy)


async def test_files_are_attached_and_what_cannot_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, "Read.", "Seen.") as chat:
        (chat.display.options.workspace / "a.txt").write_text("inside a")
        (chat.display.options.workspace / "p.png").write_bytes(b"\x89PNG")
        await chat.say("see @a.txt and @gone/b.txt")
        assert "  + a.txt\n" in chat.display.printed
        assert "@gone/b.txt was not attached: no such file" in chat.display.printed
        assert "inside a" in str(chat.server.chats[0]["messages"])
        await chat.say("and @p.png")
        assert "  ▣ p.png\n" in chat.display.printed


async def test_the_output_of_an_own_command_is_attached_when_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async with chatting(tmp_path, monkeypatch, "One.", "Two.") as chat:
        await chat.say("!")
        assert chat.runner.offer is None
        chat.runner.attach_offer()
        await chat.say("!echo marked; exit 4")
        assert "exit 4 · Alt-A attaches the output to your next message" in chat.display.printed
        chat.runner.attach_offer()
        assert "$ echo marked; exit 4 will be attached to your next message" in " ".join(chat.display.printed.split())
        assert chat.runner.offer is None
        await chat.say("look")
        assert "marked\n" in str(chat.server.chats[0]["messages"][-1]).replace("\\n", "\n")
        await chat.say("again")
        assert "marked" not in str(chat.server.chats[1]["messages"][-1])


async def test_a_pasted_block_is_sent_whole_and_shown_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting(tmp_path, monkeypatch, "Ok.") as chat:
        chip = chat.display.pastes.fold("line\n" * 20)
        await chat.say(f"read {chip}")

        assert chat.server.chats[0]["messages"][-1]["content"] == "read " + "line\n" * 20
        assert chip in chat.display.printed
