"""Typing in the chat, its terminal, and two chats in one project."""

import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import Runner, running, texts
from tests.cli.terminal import (
    ALT_ENTER,
    CTRL_C,
    CTRL_D,
    CTRL_G,
    CTRL_O,
    CTRL_R,
    ENTER,
    ESCAPE,
    TAB,
    UP,
    Terminal,
    at_terminal,
)
from tests.covers import covers
from tests.servers.answers import Answer
from tests.sizes import SOAK


def sent(runner: Runner, number: int = -1) -> str:
    """What the model read last as the person's words."""
    messages = runner.server.chats[number]["messages"]
    return next(m["content"] for m in reversed(messages) if m["role"] == "user")


@covers("H478", "H482", "H620", "S4.8")
async def test_everything_one_can_type(tmp_path: Path) -> None:
    loop = [Answer(calls=[("read_file", {"path": "src/note.txt"})]) for _ in range(3)]
    script = [Answer(thinking="First this.\nThen that.", text="Seen."), "Edited.", "With output.", *loop, "Last."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "src").mkdir()
        (runner.workspace / "src" / "note.txt").write_text("a note\n")
        editor = tmp_path / "editor"
        editor.write_text("#!/bin/sh\nprintf 'from the editor' > \"$1\"\n")
        editor.chmod(0o700)
        async with at_terminal(runner, "chat", size=(100, 40), EDITOR=str(editor), VISUAL="") as terminal:
            await attaches_a_file(terminal, runner)
            await writes_in_the_editor(terminal, runner)
            await runs_a_command_of_ones_own(terminal, runner)
            await is_told_of_a_loop(terminal)
            await reads_the_history(terminal, runner)
            await goes_back(terminal, runner)
            await leaves(terminal)


async def attaches_a_file(terminal: Terminal, runner: Runner) -> None:
    await terminal.wait_for("scripted @")
    terminal.type("read @snt")
    await terminal.wait_for("src/note.txt")
    terminal.type(TAB)
    await terminal.wait_for("@src/note.txt")
    terminal.type(ALT_ENTER + "second line\\" + ENTER + "third" + ENTER)
    await terminal.wait_for("+ src/note.txt", "thought for", "Seen.")
    assert sent(runner).startswith("read @src/note.txt\nsecond line\nthird\n\n[src/note.txt]\n```\na note")
    assert "First this." not in terminal.text()
    terminal.type(CTRL_O)
    await terminal.wait_for("First this.")
    terminal.type(CTRL_O)


async def writes_in_the_editor(terminal: Terminal, runner: Runner) -> None:
    terminal.type(CTRL_G)
    await terminal.wait_for("from the editor")
    terminal.type(ENTER)
    await terminal.wait_for("Edited.")
    assert sent(runner) == "from the editor"


async def runs_a_command_of_ones_own(terminal: Terminal, runner: Runner) -> None:
    terminal.type("!echo mine; exit 3" + ENTER)
    await terminal.wait_for("exit 3 · the model sees this with your next message", "mine")
    terminal.type("!echo not this" + ENTER)
    await terminal.wait_for("exit 0 · the model sees this")
    terminal.type(ESCAPE + "a")
    await terminal.wait_for("Not sent with the next message: $ echo not this")
    terminal.type("what is this?" + ENTER)
    await terminal.wait_for("With output.")
    assert sent(runner) == "what is this?\n\n[$ echo mine; exit 3]\n```\nmine\n```"


async def is_told_of_a_loop(terminal: Terminal) -> None:
    terminal.type("loop" + ENTER)
    await terminal.wait_for("is looping", "repeated-tool", "/continue resumes")


async def reads_the_history(terminal: Terminal, runner: Runner) -> None:
    terminal.type("/hist")
    await terminal.wait_for("Show the conversation")
    terminal.type("ory" + ENTER)
    await terminal.wait_for("#1 user", "read_file", "LoopStopped")
    terminal.type("/export all.md" + ENTER)
    await terminal.wait_for("all.md.")
    written = (runner.workspace / "all.md").read_text()
    assert "from the editor" in written
    assert "a note" in written
    terminal.type("/export all.json" + ENTER)
    await terminal.wait_for("all.json.")
    assert len(json.loads((runner.workspace / "all.json").read_text())["messages"]) >= 8
    terminal.type("/context" + ENTER)
    await terminal.wait_for("tokens used (context window 4,096)", "user messages", "████")
    terminal.type("/help" + ENTER)
    await terminal.wait_for("/approval", "/expand", "/rewind", "/trust")
    terminal.type("/hlep" + ENTER)
    await terminal.wait_for("Did you mean /help?")


async def goes_back(terminal: Terminal, runner: Runner) -> None:
    terminal.type(CTRL_R + "from the ed")
    await terminal.wait_for("search back: from the ed", "› from the editor")
    terminal.type(ENTER)
    await terminal.wait_for(gone="search back")
    terminal.type(CTRL_C)
    await terminal.wait_for(gone="› from the editor\n\n")
    terminal.type(ESCAPE)
    await terminal.settle(0.4)
    terminal.type(ESCAPE)
    await terminal.wait_for("Rewind to before which message?")
    terminal.type(UP)
    await terminal.settle(0.2)
    terminal.type(ENTER)
    await terminal.wait_for("This removes message", "Enter rewind")
    terminal.type(ENTER)
    await terminal.wait_for("Rewound to before message", gone="Rewind to before which")
    await terminal.wait_for("› what is this?")
    terminal.type(" again" + ENTER)
    await terminal.wait_for("Last.")
    said = [m["content"] for m in runner.server.chats[-1]["messages"] if m["role"] == "user"]
    assert [text.partition("\n")[0] for text in said] == [
        "read @src/note.txt",
        "from the editor",
        "what is this? again",
    ]


async def leaves(terminal: Terminal) -> None:
    terminal.type("half a line" + CTRL_C)
    await terminal.wait_for(gone="half a line")
    terminal.type(CTRL_D)
    assert await terminal.ended() == 0


async def test_a_directory_after_the_at_sign_attaches_its_listing(tmp_path: Path) -> None:
    async with running(tmp_path, ["I see.", "Many."]) as runner:
        for name in ("src/a.py", "src/deep/b.py", "src/secret.log"):
            (runner.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (runner.workspace / name).write_text("the content\n")
        (runner.workspace / ".gitignore").write_text("*.log\nmany/x1*\n")
        (runner.workspace / "many").mkdir()
        for number in range(300):
            (runner.workspace / "many" / f"f{number:03}").touch()
        async with at_terminal(runner, "chat", "--new") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("what is in @src/ ?" + ENTER)
            await terminal.wait_for("+ src/ (2 files)", "I see.")
            terminal.type("and @many" + ENTER)
            await terminal.wait_for("+ many/ (300 files)", "Many.")

    first, second = sent(runner, 0), sent(runner)
    assert "a.py\ndeep/b.py" in first
    assert "secret.log" not in first
    assert "the content" not in first
    assert "f199\n(100 more)" in second


BACKSPACE, CTRL_N = "\x7f", "\x0e"

EDITOR = "#!/bin/sh\necho EDITOR-BEGINS\nsleep 1.5\necho EDITOR-ENDS\nprintf 'from the editor' > \"$1\"\n"


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_the_terminal_belongs_to_whoever_it_is_lent_to(tmp_path: Path) -> None:
    story = "".join(f"Paragraph {number} of it.\n\n" for number in range(60))
    async with running(tmp_path, [Answer(text=story, pace=0.02), "Edited."]) as runner:
        editor = tmp_path / "editor"
        editor.write_text(EDITOR)
        editor.chmod(0o700)
        (runner.home / "commands").mkdir(parents=True)
        (runner.home / "commands" / "connect.md").write_text("Connect $ARGUMENTS\n")
        async with at_terminal(runner, "chat", size=(80, 12), EDITOR=str(editor), VISUAL="") as terminal:
            terminal.type("!echo mine" + "\n")  # before there is an input: a terminal then makes a line end of Enter
            await terminal.wait_for("scripted @")
            await terminal.wait_for("› !echo mine", "exit 0")
            assert "^[[" not in terminal.text(), "an answer of the terminal was echoed"
            terminal.type("a story" + ENTER)
            await terminal.wait_for("Paragraph 3 of it.")
            terminal.type(CTRL_G)
            await terminal.wait_for("EDITOR-ENDS", "Paragraph 59 of it.", "› from the editor")
            within = bytes(terminal.raw).partition(b"EDITOR-BEGINS")[2].partition(b"EDITOR-ENDS")[0]
            assert within.strip() == b"", "something was written while the editor had the terminal"
            terminal.type(ENTER)
            await terminal.wait_for("Edited.")
            await completions_have_room(terminal)
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0


async def completions_have_room(terminal: Terminal) -> None:
    """The input stands at the very bottom here; the list makes its own room."""
    terminal.type("/co")
    await terminal.wait_for(
        "/compact ", "/context ", "/continue ", "Continue after a stopped loop", "/connect ", "Connect $ARGUMENTS"
    )
    terminal.type(CTRL_C)
    await terminal.wait_for(gone="/compact ")


async def test_the_status_line_follows_commands_and_a_paste_goes_with_one_key(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello.", "Again."]) as runner:
        async with at_terminal(runner, "chat", size=(110, 30)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("many " * 300 + "words" + ENTER)
            await terminal.wait_for("Hello.", gone="· Esc stops")
            assert await terminal.wait_until(lambda: terminal.screen().rstrip().endswith("…")), "the title is there"
            assert "reused" not in terminal.screen(), "there was no prompt before the first"
            await follows_commands(terminal)
            terminal.paste("".join(f"row {number}\n" for number in range(5000)))
            await terminal.wait_for("› [pasted 5,000 lines #1]")
            terminal.type(BACKSPACE + "gone" + ENTER)
            await terminal.wait_for("› gone", "Again.")
            terminal.type(CTRL_D)
            await terminal.ended()
    assert runner.server.chats[-1]["messages"][-1]["content"] == "gone"


async def follows_commands(terminal: Terminal) -> None:
    before = share(terminal)
    terminal.type("/context size 2048" + ENTER)
    await terminal.wait_for("Context window set to 2,048", gone=f" {before}%")
    terminal.type("/todos add write" + ENTER)
    await terminal.wait_for("todo 0/1")
    terminal.type("/todos done 1" + ENTER)
    await terminal.wait_for("todo 1/1")
    assert share(terminal) > before + 5


def share(terminal: Terminal) -> int:
    """How full the status line says the window is, in percent."""
    return int(terminal.screen().rpartition("%")[0].rpartition(" ")[2])


async def test_sessions_are_chosen_on_a_tiny_terminal_and_a_signal_ends_the_choice(tmp_path: Path) -> None:
    async with running(tmp_path, ["About cats.", "About dogs."]) as runner:
        await two_sessions(runner)
        async with at_terminal(runner, "chat", size=(40, 10)) as terminal:
            await terminal.wait_for("Resume a chat", " cats ", " dogs ", "Esc new chat")
            terminal.resize(80, 24)
            await terminal.wait_for("cats", "dogs", "Esc new chat")
            terminal.kill(signal.SIGTERM)
            assert await terminal.ended() == 143
        async with at_terminal(runner, "chat", "--continue") as terminal:
            await terminal.wait_for("› dogs", "scripted @")
            terminal.type("/sessions" + ENTER)
            await terminal.wait_for("Resume a chat")
            await terminal.settle(0.4)
            terminal.type(ESCAPE)
            await terminal.wait_for(gone="Resume a chat")
            terminal.type("/sessions" + ENTER)
            await terminal.wait_for("Resume a chat")
            terminal.type(CTRL_N)
            assert await terminal.wait_until(lambda: terminal.text().count("▌ ollm ") == 2), "a new chat"
            terminal.kill(signal.SIGTERM)
            assert await terminal.ended() == 143, "the chat listens again after the choice"


async def two_sessions(runner: Runner) -> None:
    for name in ("cats", "dogs"):
        async with at_terminal(runner, "chat", "--new", TERM="dumb") as terminal:
            await terminal.wait_for("Ctrl-D to quit", "\n>")
            terminal.type(f"{name}\n")
            await terminal.wait_for(f"About {name}.", "\n> ")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0


async def test_plain_lines_choose_a_session_attach_and_run_commands(tmp_path: Path) -> None:
    async with running(tmp_path, ["About cats.", "About dogs.", "Seen.", "More.", "New one."]) as runner:
        await two_sessions(runner)
        (runner.workspace / "note.txt").write_text("a note\n")
        async with at_terminal(runner, "chat", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("1. dogs, ", "2. cats, ", "q to quit:")
            assert b"\x1b" not in bytes(terminal.raw), "plain lines only"
            terminal.type("cat\n")
            await terminal.wait_for("1. cats, ")
            terminal.type("1\n")
            await terminal.wait_for("> cats", "About cats.", "Ctrl-D to quit")
            terminal.type("!echo mine\n")
            await terminal.wait_for("attach the output to your next message?")
            terminal.type("y\n")
            terminal.type("see @note.txt\\\nplease\n")
            await terminal.wait_for("+ note.txt", "Seen.")
            await switches_plainly(terminal)
        asked = runner.server.chats[2]["messages"][-1]["content"]
        async with at_terminal(runner, "chat", OLLM_PLAIN="1") as terminal:
            await terminal.wait_for("q to quit:")
            terminal.type(CTRL_C)
            assert await terminal.ended() == 0
    assert asked.startswith("see @note.txt\nplease\n\n[note.txt]\n```\na note\n```\n\n[$ echo mine]\n```\nmine\n```")


async def switches_plainly(terminal: Terminal) -> None:
    terminal.type("/sessions\n")
    await terminal.wait_for("| session |", "| dogs |")
    wanted = next(line for line in terminal.text().split("\n") if "| dogs |" in line).split("|")[1].strip()
    terminal.type(f"/sessions {wanted}\n")
    await terminal.wait_for("> dogs")
    terminal.type("more\n")
    await terminal.wait_for("More.")
    terminal.type("/new\n")
    await terminal.wait_for("New session")
    terminal.type("third\n")
    await terminal.wait_for("New one.")
    terminal.type("/exit\n")
    assert await terminal.ended() == 0


async def test_the_second_chat_opens_beside_the_first_and_both_go_on(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(at_terminal(runner, "first question"))
            await first.wait_for("One.")
            second = await stack.enter_async_context(at_terminal(runner))
            await second.wait_for("This workspace is in use by another ollm (process", "[b] open beside it")
            second.type("b")
            await second.wait_for("scripted @")
            assert "Resume a chat" not in second.text(), "the newest session is the one that is open"
            second.type("second question" + ENTER)
            await second.wait_for("Two.")
            first.type("third question" + ENTER)
            await first.wait_for("Three.")
            for terminal in (first, second):
                terminal.type(CTRL_D)
                assert await terminal.ended() == 0

    kept = sorted([text for role, text in texts(session) if role == "user"] for session in runner.sessions())
    assert kept == [["first question", "third question"], ["second question"]]


async def test_the_second_chat_leaves_the_first_alone_or_takes_over(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner, at_terminal(runner, "first question") as first:
        await first.wait_for("One.")
        async with at_terminal(runner, "--new") as second:
            await second.wait_for("[q] quit")
            second.type("q")
            assert await second.ended() == 0
        assert first.child.isalive()
        async with at_terminal(runner, "second question", size=(40, 20), COLUMNS="") as second:
            await second.wait_for("[t] take over,\nwhich closes it there", "(process")
            second.type("t")
            assert await first.ended() == 0
            assert "took over this workspace" in first.text()
            await second.wait_for("Two.")


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_beside_a_chat_the_newest_session_that_is_not_open_is_continued(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        async with at_terminal(runner, "about cats") as terminal:
            await terminal.wait_for("One.")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "about dogs") as first:
            await first.wait_for("Two.")
            async with at_terminal(runner, "-c", "--beside") as second:
                await second.wait_for("› about cats", "Resumed")


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_many_chats_open_without_a_question_where_that_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        ollm("config", "set", "workspace.sessions", "many", home=runner.home)
        async with at_terminal(runner, "first question") as first, at_terminal(runner, "second question") as second:
            await first.wait_for("first question", "scripted @")
            await second.wait_for("second question", "scripted @")
            assert "in use" not in first.text() + second.text()


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_the_daemon_is_named_and_lets_go_when_nobody_is_attached(tmp_path: Path) -> None:
    async with running(tmp_path, ["From the daemon.", "Here."]) as runner:
        try:
            async with at_terminal(runner, "chat", "--daemon", "--new") as attached:
                await attached.wait_for("scripted @")
                attached.type("hi" + ENTER)
                await attached.wait_for("From the daemon.")
                async with at_terminal(runner, "--new") as other:
                    await other.wait_for("Asking the daemon for the workspace")
                    await other.wait_for("This workspace is in use by the ollm daemon (process", "[q] quit")
                    other.type("q")
                    assert await other.ended() == 0
                attached.type(CTRL_D)
                assert await attached.ended() == 0
            async with at_terminal(runner, "hello there") as other:
                await other.wait_for("Here.")
                assert "in use" not in other.text()
        finally:
            ollm("daemon", "stop", home=runner.home)
