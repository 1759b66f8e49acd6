"""Typing in the chat: completion, history, the editor, commands of one's own, and going back."""

import json
from pathlib import Path

from tests.cli.running import Runner, running
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
    terminal.type(ENTER)
    terminal.type(ALT_ENTER + "second line\\" + ENTER + "third" + ENTER)
    await terminal.wait_for("+ src/note.txt", "thought for 2 lines", "Seen.")
    assert sent(runner).startswith("read @src/note.txt\nsecond line\nthird\n\n[src/note.txt]\n```\na note")
    assert "First this." not in terminal.text()
    terminal.type(CTRL_O)
    await terminal.wait_for("First this.")
    terminal.type(CTRL_O)
    await terminal.wait_for("collapsed again")


async def writes_in_the_editor(terminal: Terminal, runner: Runner) -> None:
    terminal.type(CTRL_G)
    await terminal.wait_for("from the editor")
    terminal.type(ENTER)
    await terminal.wait_for("Edited.")
    assert sent(runner) == "from the editor"


async def runs_a_command_of_ones_own(terminal: Terminal, runner: Runner) -> None:
    terminal.type("!echo mine; exit 3" + ENTER)
    await terminal.wait_for("exit 3 · Alt-A attaches", "mine")
    terminal.type(ESCAPE + "a")
    await terminal.wait_for("will be attached to your next message")
    terminal.type("what is this?" + ENTER)
    await terminal.wait_for("With output.")
    assert sent(runner) == "what is this?\n\n[$ echo mine; exit 3]\n```\nmine\n```"


async def is_told_of_a_loop(terminal: Terminal) -> None:
    terminal.type("loop" + ENTER)
    await terminal.wait_for("is looping", "repeated-tool", "/continue resumes")


async def reads_the_history(terminal: Terminal, runner: Runner) -> None:
    terminal.type("/hist")
    await terminal.wait_for("Show or export the conversation")
    terminal.type("ory" + ENTER)
    await terminal.wait_for("#1 user", "read_file", "LoopStopped")
    terminal.type("/history export all.md" + ENTER)
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
    assert [text.partition("\n")[0] for text in said] == ["read @src/note.txt", "from the editor", "what is this?"]


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
