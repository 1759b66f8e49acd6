"""Every slash command, through the door a script uses: `ollm -p "/name"`; and what the chat's own need."""

from pathlib import Path

import pytest

from ollm.app import open_conversation
from ollm.cli.daemon import open_remote_conversation
from ollm.cli.start import ChatArguments
from ollm.domain.errors import OllmError
from ollm.runtime.base import Conversation, ConversationOptions
from ollm.runtime.commands import build_command_table
from tests.cli.command import ollm
from tests.cli.running import running
from tests.covers import covers
from tests.servers.answers import Answer
from tests.sizes import SOAK

SAYS = {
    "/help": "/approval",
    "/help context": "`restore ID`: go back",
    "/help nonsense": "Unknown command /nonsense",
    "/history": "#1 user",
    "/history 1": "earlier message",
    "/history all": "Hello.",
    "/history export h.md": "h.md",
    "/export h.json": "h.json",
    "/context": "tokens used",
    "/context snapshot": "Snapshot",
    "/context list": "manual",
    "/context add rule be brief": "rule",
    "/context entries": "be brief",
    "/context size 4096": "4,096",
    "/compact": "Nothing to compact",
    "/expand 1": "hi",
    "/mode": "Mode:",
    "/mode plan": "plan",
    "/approval": "Approval:",
    "/approval read-only": "read-only",
    "/plan": "No plan",
    "/goal set ship it": "ship it",
    "/model": "scripted",
    "/tools": "read_file",
    "/memory set k v": "Remembered",
    "/memory": "k",
    "/todos add write": "write",
    "/sessions": "session",
    "/resume": "session",
    "/status": "approval",
    "/permissions": "No grants",
    "/copy": "Hello.",
    "/diff": "changed no files",
    "/mcp": "",
    "/resource": "No MCP server",
    "/skills": "skills",
    "/agents": "agents",
    "/undo": "Nothing to undo",
    "/trust": "trusted",
    "/rewind 1": "This removes message",
    "/redo": "Nothing to redo",
    "/rename greeting": "Renamed to greeting.",
    "/cost": "tokens read",
    "/config": "ollm config",
    "/doctor": "ollm doctor",
    "/nope": "Unknown command /nope",
    "/mode sideways": "Usage: /mode",
}
ASKS_THE_SCREEN = {"new", "clear", "exit", "quit"}
SENDS = {"continue", "retry", "init", "review"}


@covers("H478", "H482", "H620")
async def test_every_command_answers_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        for name in ("OLLM_HOME", "OLLM_BASE_URL", "OLLM_PROVIDER", "OLLM_MODEL"):
            monkeypatch.setenv(name, runner.environment()[name])
        async with open_conversation(ConversationOptions(workspace=runner.workspace, interactive=True)) as conversation:
            async with conversation.turn("hi") as events:
                assert [event async for event in events]
            said = {command: await told(conversation, command) for command in SAYS}

    assert {command: text for command, text in said.items() if SAYS[command] not in text} == {}
    assert (runner.workspace / "h.md").exists()


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_every_command_answers_through_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        for name in ("OLLM_HOME", "OLLM_BASE_URL", "OLLM_PROVIDER", "OLLM_MODEL"):
            monkeypatch.setenv(name, runner.environment()[name])
        try:
            async with open_remote_conversation(ChatArguments(workspace=runner.workspace, new=True)) as conversation:
                async with conversation.turn("hi") as events:
                    assert [event async for event in events]
                said = {command: await told(conversation, command) for command in SAYS}
                asked = {name: (await conversation.command(name)).follow_up for name in (*ASKS_THE_SCREEN, *SENDS)}
                session = conversation.session_id
                again = await conversation.command("sessions", str(session)[:8])
        finally:
            ollm("daemon", "stop", home=runner.home)

    assert {command: text for command, text in said.items() if SAYS[command] not in text} == {}
    leaving = {"exit": "exit", "quit": "exit", "new": "new-session", "clear": "new-session"}
    assert asked == leaving | {"continue": "send", "init": "send", "retry": "send"}
    assert (again.follow_up, again.argument) == ("open-session", session)


async def told(conversation: Conversation, command: str) -> str:
    name, _, arguments = command[1:].partition(" ")
    try:
        return (await conversation.command(name, arguments)).text
    except OllmError as error:
        return str(error)


async def test_a_command_is_run_from_a_script_and_its_answer_is_the_output(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Going on."]) as runner:
        await runner.run("-p", "hi")
        shown = await runner.run("--continue", "-p", "/history")
        went_on = await runner.run("--continue", "-p", "/continue please")
        wrong = await runner.run("-p", "/mode sideways")
        behind = await runner.run("-p", "hi", "--daemon")

    assert "#1 user" in shown.out
    assert "Hello." in shown.out
    assert went_on.out == "Going on.\n"
    assert "Go on. please" in str(runner.server.chats[-1])
    assert (wrong.code, wrong.out) == (2, "")
    assert (behind.code, behind.out) == (2, "")
    assert "Usage: /mode" in wrong.err


@pytest.mark.parametrize("again", ["hello there", "/retry", "/continue"])
async def test_words_that_nothing_answered_are_sent_once_when_they_are_sent_again(tmp_path: Path, again: str) -> None:
    broken = Answer(status=400, body={"error": {"message": "out of order"}})
    async with running(tmp_path, [broken, broken, "Hello."]) as runner:
        failed = [await runner.run("-p", "hello there"), await runner.run("--continue", "-p", again)]
        worked = await runner.run("--continue", "-p", again)

    assert (0 not in {one.code for one in failed}, worked.out) == (True, "Hello.\n")
    (request,) = [one for one in runner.server.chats[-1]["messages"] if one["role"] == "user"]
    assert request["content"].count("hello there") == 1
    assert "Go on" not in request["content"]


def test_no_command_is_left_out_of_these_tests() -> None:
    tried = {command.split()[0].removeprefix("/") for command in SAYS}

    assert {command.name for command in build_command_table().values()} <= tried | ASKS_THE_SCREEN | SENDS
