"""A chat in which the model runs a formatter over fifty files, and the person goes back with Esc Esc and forth again."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.sessions.test_rewind import FORMATTER, call, read_files, write_project
from tests.cli.terminal import CTRL_D, DOWN, ENTER, ESCAPE, Terminal, at_terminal


async def press_escape_twice(terminal: Terminal) -> None:
    """Until the list is there: on a busy machine two presses may lie too far apart to count as one."""
    await terminal.wait_for(gone="· Esc stops")
    for seconds in (5, 10, 20, 40):
        terminal.type(ESCAPE)
        await terminal.settle(0.4)
        terminal.type(ESCAPE)
        if await terminal.wait_until(lambda: "Rewind to before which message?" in terminal.screen(), seconds):
            break
    await terminal.wait_for("Rewind to before which message?")
    terminal.type(ENTER)
    await terminal.wait_for("files would change back", "Conversation and files", "Files only")


async def test_a_formatter_over_fifty_files_is_taken_back_in_the_chat(tmp_path: Path) -> None:
    script = [call(FORMATTER), "Formatted.", "Nothing to see.", call("rm module1.py"), "Removed."]
    async with running(tmp_path, script) as runner:
        before = write_project(runner.workspace)
        async with at_terminal(runner, "chat", "--approval", "yolo", size=(100, 40)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("format everything" + ENTER)
            await terminal.wait_for("Formatted.")
            after = read_files(runner.workspace)
            assert after != before
            await press_escape_twice(terminal)
            terminal.type(ENTER)
            await terminal.wait_for("Rewound to before message 1.", "54 files restored.", "› format everything")
            assert read_files(runner.workspace) == before
            terminal.type("\x15/redo" + ENTER)
            await terminal.wait_for("Undid the rewind to before message 1.")
            assert read_files(runner.workspace) == after
            await press_escape_twice(terminal)
            terminal.type(DOWN + DOWN)
            await terminal.settle(0.2)
            terminal.type(ENTER)
            await terminal.wait_for("Files are as they were before message 1.")
            assert read_files(runner.workspace) == before
            terminal.type("what is this?" + ENTER)
            await terminal.wait_for("Nothing to see.")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0

    assert "The user put files back as they were before message 1" in str(runner.server.chats[-1])
