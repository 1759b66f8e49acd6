"""How the chat behaves at its edges: trust, colour, plain lines, a narrow terminal, a crash."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.cli.command import SCRIPT
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, ESCAPE, Terminal, at_terminal, steady
from tests.servers.answers import Answer

SCREENS = Path(__file__).parent / "screens"


async def held_to(name: str, terminal: Terminal) -> None:
    """The screen comes to be what it was when it was last looked at; WRITE_SCREENS=1 writes it anew."""
    file = SCREENS / f"{name}.txt"

    def read_screen() -> str:
        return steady(terminal.screen()).replace(str(Path.home()), "~") + "\n"

    if os.environ.get("WRITE_SCREENS"):
        await terminal.settle(1)
        file.write_text(read_screen(), encoding="utf-8")
    wanted = file.read_text(encoding="utf-8")
    await terminal.wait_until(lambda: read_screen() == wanted, seconds=20)
    assert read_screen() == wanted


async def test_the_main_screens_look_as_they_should(tmp_path: Path) -> None:
    answer = "# Plan\n\n1. read 日本語 🎉\n2. write\n\n```python\ndef f():\n    return 1\n```\n"
    edit = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "one", "replacement": "two"}]})])
    todos = Answer(calls=[("write_todos", {"action": "add", "text": "write the tests"})])
    async with running(tmp_path, [Answer(text=answer), edit, todos, "Done."]) as runner:
        (runner.workspace / "a.txt").write_text("zero\none\nmore\n")
        (runner.workspace / ".git").mkdir()
        (runner.workspace / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
        async with at_terminal(runner, "chat", size=(130, 70), NO_COLOR="1") as terminal:
            await terminal.wait_for("⎇ topic")
            await held_to("first", terminal)
            terminal.type("plan it" + ENTER)
            await terminal.wait_for("return 1", "plan it · ⎇ topic")
            await held_to("answered", terminal)
            terminal.type("edit" + ENTER)
            await terminal.wait_for("[y] yes")
            await held_to("asked", terminal)
            assert not re.search(rb"\x1b\[[\d;]*\b3\d[\d;]*m", bytes(terminal.raw)), "no colour"
            terminal.type("y")
            await terminal.wait_for("Done.", "todo 0/1")
            await held_to("done", terminal)
            terminal.resize(40, 12)
            await terminal.wait_for("code·ask · scripted")
            assert all(len(line) <= 40 for line in terminal.paper.display)


async def test_a_terminal_that_answers_late_keeps_every_line_on_the_screen(tmp_path: Path) -> None:
    """Where its cursor is, which it says after more was written, would be taken for where it is now."""
    read = Answer(text="Let me look.\n", calls=[("read_file", {"path": "a.txt"})])
    async with running(tmp_path, [read, read, "That is all."]) as runner:
        (runner.workspace / "a.txt").write_text("zero\n")
        async with at_terminal(runner, "chat", size=(80, 60)) as terminal:
            loop, answer = asyncio.get_running_loop(), terminal.paper.write_process_input
            terminal.paper.write_process_input = lambda data: loop.call_later(0.7, answer, data)  # type: ignore[method-assign, assignment, return-value]
            await terminal.wait_for("code·ask")
            terminal.type("look" + ENTER)
            await terminal.wait_for("That is all.")
            await terminal.settle(1)
            assert not terminal.paper.history.top
            assert terminal.screen().startswith("Ask anything about this project.")
            assert "That is all.\n\n──" in terminal.screen()


async def test_an_unknown_workspace_is_asked_about_once(tmp_path: Path) -> None:
    async with running(tmp_path, ["Yes.", "No."]) as runner:
        (runner.workspace / "AGENTS.md").write_text("Always say moo.\n")
        said = await runner.run("-p", "hi")
        assert said.err.count("\n") == 1
        assert "AGENTS.md" in said.err
        assert "ollm trust" in said.err
        async with at_terminal(runner, "chat", "--new", TERM="dumb") as terminal:
            await terminal.wait_for("AGENTS.md", "Trust them?")
            terminal.type("n\n")
            await terminal.wait_for("Not used", "Ctrl-D to quit", "\n>")
            terminal.type("hello\n")
            await terminal.wait_for("No.")
            terminal.type("/exit\n")
            assert await terminal.ended() == 0
            assert "ollm -r " in terminal.text()
        assert "moo" not in str(runner.server.chats[-1])
        assert (await runner.run("-p", "hi")).err == "", "it was answered"
        (runner.workspace / "AGENTS.md").write_text("Always say baa.\n")
        (runner.home / "config.yaml").write_text("screen: {keys: vi}\n")
        async with at_terminal(runner, "chat", "--new") as terminal:
            await terminal.wait_for("Trust them?")
            terminal.type("y" + ENTER)
            await terminal.wait_for("scripted @")
            terminal.type("xhullo" + ESCAPE)
            await terminal.settle(0.3)
            terminal.type("0xlre" + ENTER)
            await terminal.wait_for("› hello", "The script is over.")
            await closes_with_its_window(terminal)
        assert "baa" in str(runner.server.chats[-1])
    assert not (runner.workspace / ".ollm" / "lease.lock").exists(), "the workspace was let go of"


async def closes_with_its_window(terminal: Terminal) -> None:
    """The terminal goes away: SIGHUP, and nothing to write to any more."""
    terminal.hang_up()
    async with asyncio.timeout(20):
        while psutil.pid_exists(terminal.child.pid) and psutil.Process(terminal.child.pid).status() != "zombie":
            await asyncio.sleep(0.05)


async def test_plain_lines_ask_and_are_stopped(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "b.txt", "content": "hello\n"})])
    script = [write, "Refused then.", write, "Written.", Answer(text="Goes on", stall_after=1), "Still here."]
    async with running(tmp_path, script) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("screen: {plain: true}\n")
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("Ctrl-D to quit")
            terminal.type("write\n")
            await terminal.wait_for("[y] yes")
            terminal.type("not this\n")
            await terminal.wait_for("Refused then.")
            assert "not this" in str(runner.server.chats[1])
            terminal.type("write\n")
            await terminal.wait_for("b.txt", "[y] yes", gone="Refused then. x")
            await terminal.settle(0.2)
            terminal.type("y\n")
            await terminal.wait_for("Written.")
            terminal.type("go on\n")
            await terminal.wait_for("Goes")
            terminal.child.sendintr()
            await terminal.wait_for("(stopped)")
            terminal.type("hello\n")
            await terminal.wait_for("Still here.")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
    assert (runner.workspace / "b.txt").exists()


CRASH = """
import asyncio, contextlib
from pathlib import Path
from ollm.cli.screen.themes import ScreenOptions
from ollm.cli.screen.application import create_chat_screen

@contextlib.asynccontextmanager
async def broken():
    raise RuntimeError("a bug")
    yield

async def main():
    await create_chat_screen(ScreenOptions(history=Path("history"), workspace=Path()), lambda typed: [], None).run(broken)

try:
    asyncio.run(main())
except RuntimeError as error:
    print("ended with", error)
"""


def test_a_crash_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    command = f"stty -a > before; {sys.executable} -c '{CRASH}'; stty -a > after; echo over"
    child = pexpect.spawn("/bin/sh", ["-c", command], cwd=str(tmp_path), dimensions=(24, 80), timeout=60, use_poll=True)
    child.expect("ended with a bug")
    child.expect("over")
    child.close()

    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


@pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")
async def test_narrowing_the_window_while_an_answer_is_written_leaves_no_cut_copy(tmp_path: Path) -> None:
    """In tmux, which wraps lines again some time before it reports the new size."""
    story = "\n\n".join(f"Paragraph {at} of a story that is long enough to take several lines." for at in range(9))
    async with running(tmp_path, [Answer(text=story, pace=0.06)]) as runner:
        tmux = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "socket")]

        def control(*words: str) -> str:
            line, environment = [*tmux, *words], runner.environment()
            return subprocess.run(line, env=environment, capture_output=True, text=True, check=False).stdout

        control("new-session", "-d", "-x", "80", "-y", "30", "-c", str(runner.workspace), SCRIPT, "tell a story")
        try:
            for columns in (76, 60, 48, 70, 52, 66, 40, 58):
                await asyncio.sleep(0.7)
                control("resize-window", "-x", str(columns))
            async with asyncio.timeout(60):
                while (
                    "Paragraph 8 of" not in (shown := control("capture-pane", "-p", "-S", "-200")) or "writing" in shown
                ):
                    await asyncio.sleep(0.2)
        finally:
            control("kill-server")

    assert [shown.count(f"Paragraph {at} of") for at in range(9)] == [1] * 9, shown
