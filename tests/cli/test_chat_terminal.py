"""The chat and its terminal: small ones, one that is lent to an editor, what the status line says after a command."""

import signal
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_C, CTRL_D, CTRL_G, ENTER, ESCAPE, Terminal, at_terminal
from tests.servers.answers import Answer
from tests.sizes import SOAK

BACKSPACE, CTRL_N = "\x7f", "\x0e"
EDITOR = "#!/bin/sh\necho EDITOR-BEGINS\nsleep 1.5\necho EDITOR-ENDS\nprintf 'from the editor' > \"$1\"\n"


@pytest.mark.soak
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
            await terminal.wait_for("› gone", "Again.", "cache ")
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
