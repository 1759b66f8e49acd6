"""Slash commands, habits of other agents, and the chat as plain lines."""

from pathlib import Path

import pytest

from ollm.app.conversation import open_conversation
from ollm.cli.daemon import open_remote_conversation
from ollm.cli.screen.questions import parse_answer
from ollm.cli.start import ChatArguments
from ollm.domain.errors import OllmError
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.runtime.base import Conversation, ConversationOptions
from ollm.runtime.commands import build_command_table
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.screen.samples import details
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
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
    "/export h.md": "h.md",
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
    "/worktree": "not in a git repository",
    "/status": "approval",
    "/permissions": "No grants",
    "/copy": "Hello.",
    "/run": "The last answer shows 0 commands.",
    "/diff": "changed no files",
    "/diagnostics": "No errors known",
    "/mcp": "",
    "/resource": "No MCP server",
    "/skills": "skills",
    "/agents": "agents",
    "/undo": "Nothing to undo",
    "/trust": "trusted",
    "/rewind 1": "This removes message",
    "/redo": "Nothing to redo",
    "/fork 1": "Files stay as they are",
    "/fork 99": "There is no message 99",
    "/rename greeting": "Renamed to greeting.",
    "/cost": "tokens read",
    "/usage": "tokens read",
    "/theme": "screen.theme",
    "/vim": "screen.keys",
    "/add-dir /nowhere": "Name a directory that exists",
    "/add-dir /": "cannot be added: your home",
    "/config": "ollm config",
    "/doctor": "ollm doctor",
    "/expand": "Usage: /expand",
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
                await anext(events)
                during = [await told(conversation, command) for command in ("/doctor", "/compact")]
                assert [event async for event in events]
            said = {command: await told(conversation, command) for command in SAYS}

    assert "ollm doctor" in during[0]
    assert "cannot run while the model works" in during[1]
    assert {command: text for command, text in said.items() if SAYS[command] not in text} == {}
    assert (runner.workspace / "h.md").exists()


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


SHIFT_TAB = "\x1b[Z"


async def test_a_slow_command_is_named_and_stopped_and_lines_typed_meanwhile_stay_apart(tmp_path: Path) -> None:
    slow = Answer(text=" ".join(f"word{number}" for number in range(2000)), pace=0.05)
    story = "\n".join(f"Item {number} of the list, told in a few words." for number in range(120))
    async with running(tmp_path, [story, f"{story}\nEnd.", slow, "One.", "Two."], kind="vllm", window=16384) as runner:
        async with at_terminal(runner, size=(80, 40)) as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("go" + ENTER + "on" + ENTER)
            await terminal.wait_for("End.", gone="Esc stops")
            terminal.type("/compact" + ENTER)
            await terminal.wait_for("compacting older messages")
            terminal.type("\x03")
            await terminal.wait_for("Stopped.", gone="compacting")
            terminal.type("!echo begun; sleep 2" + ENTER)
            await terminal.wait_for("\nbegun")
            terminal.type("first" + ENTER + "second" + ENTER)
            await terminal.wait_for("› first", "One.", "› second", "Two.")
            terminal.type(CTRL_D)
            await terminal.ended()


async def test_notes_keys_levels_and_own_output_work_as_elsewhere(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "x"})])
    async with running(tmp_path, ["Seen.", write, "Done."]) as runner:
        async with at_terminal(runner, size=(80, 40)) as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("/rename about tabs" + ENTER)
            await terminal.wait_for("Renamed to about tabs.")
            terminal.type("#always use tabs" + ENTER)
            await terminal.wait_for("Remembered as note-1: always use tabs")
            terminal.type("?")
            await terminal.wait_for("suspend to the shell")
            terminal.type("!echo from me" + ENTER)
            await terminal.wait_for("the model sees this with your next message")
            for level in ("code·accept-edits", "plan·read-only", "code·ask"):
                terminal.type(SHIFT_TAB)
                await terminal.wait_for(level)
            terminal.type("explain this" + ENTER)
            await terminal.wait_for("Seen.")
            terminal.type("/cost" + ENTER)
            await terminal.wait_for("20 tokens read (0 from the cache), 5 written.")
            terminal.type("write it" + ENTER)
            await terminal.wait_for("[y] yes")
            assert b"\x1b]9;ollm: Create a.txt" in bytes(terminal.raw)
            terminal.type("y")
            await terminal.wait_for("Done.")
            terminal.type(CTRL_D)
            await terminal.ended()

    first = runner.server.chats[0]["messages"]
    assert "always use tabs" in first[0]["content"]
    assert "[$ echo from me]\n```\nfrom me" in first[-1]["content"]
    assert runner.sessions()[0]["metadata"]["title"] == "about tabs"


@covers("S5.8")
async def test_entries_have_priorities_and_a_paused_plan_is_told(tmp_path: Path) -> None:
    slow = Answer(text="Slowly it comes.", stall_after=2)
    async with running(tmp_path, ["One.", slow, "Three."]) as runner:
        async with at_terminal(runner, size=(120, 60)) as terminal:
            await terminal.wait_for("code·ask")
            for line in (
                "/context add low LOW",
                "/context add --priority 90 high HIGH",
                "/todos add step",
                "/plan pause",
            ):
                terminal.type(line + ENTER)
                await terminal.wait_for(f"› {line}")
            terminal.type("hello" + ENTER)
            await terminal.wait_for("One.")
            terminal.type("again" + ENTER)
            await terminal.wait_for("Slowly")
            terminal.type("/context" + ENTER)
            await terminal.wait_for("compaction starts at")
            terminal.type("\x03")
            await terminal.wait_for("stopped")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "-c") as terminal:
            await terminal.wait_for("Resumed")
            terminal.type("more" + ENTER)
            await terminal.wait_for("Three.")
            terminal.type("/new" + ENTER)
            await terminal.wait_for("New session")
            terminal.type("/todos carry" + ENTER)
            await terminal.wait_for("step")
            terminal.type(CTRL_D)
            await terminal.ended()

    system = runner.server.chats[0]["messages"][0]["content"]
    assert system.index("HIGH") < system.index("LOW")
    for chat in (runner.server.chats[0], runner.server.chats[-1]):
        assert "The plan is paused: do not continue it unless asked." in str(chat["messages"])


@pytest.mark.parametrize(
    ("line", "asked", "answer"),
    [
        ("Yes.", details(), ConfirmationAnswer(approved=True)),
        ("s", details(grant="x"), ConfirmationAnswer(approved=True, scope="session")),
        ("no: use tabs", details(), ConfirmationAnswer(approved=False, reason="use tabs")),
        ("no idea", details(typed=True), ConfirmationAnswer(approved=True, text="no idea")),
        ("/no", details(typed=True), ConfirmationAnswer(approved=False)),
        ("s", details(), None),
        ("a", details(grant="x", locked=True), None),
        ("a new plan", details(grant="x"), None),
    ],
)
def test_a_typed_line_answers_only_with_what_is_offered(
    line: str, asked: ConfirmationDetails, answer: ConfirmationAnswer | None
) -> None:
    assert parse_answer(line, asked) == answer


MARKDOWN = """# Result

It is **done**:

- one
- two

| file | lines |
|------|-------|
| a.py | 3 |

```python
print("hi")
```
"""


async def test_markdown_is_rendered_on_a_terminal_and_left_alone_in_a_pipe(tmp_path: Path) -> None:
    read = Answer(text="I will **look**.", calls=[("read_file", {"path": "a.py"})])
    async with running(tmp_path, [read, MARKDOWN, MARKDOWN, MARKDOWN]) as runner:
        (runner.workspace / "a.py").write_text("print('hi')\n")
        async with at_terminal(runner, "-p", "do it", size=(60, 30)) as terminal:
            assert await terminal.ended() == 0
        piped = await runner.run("-p", "do it")
        async with at_terminal(runner, "-p", "do it", OLLM_PLAIN="1") as plain:
            assert await plain.ended() == 0

    shown = terminal.text()
    assert "I will look." in shown
    assert shown.index("I will look.") < shown.index("Read a.py") < shown.index("Result")
    assert "**" not in shown
    assert "|---" not in shown
    assert "```" not in shown
    assert "• one\n" in shown
    assert "file" in shown
    assert "\x1b[1m" in terminal.raw.decode()
    assert piped.out == MARKDOWN
    assert "**done**" in plain.text()
