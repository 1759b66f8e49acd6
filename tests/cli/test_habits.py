"""Habits of other agents that work here: `!`, `#`, `?`, Shift-Tab, commands, notifications, one's own status line."""

import json
from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer

SHIFT_TAB = "\x1b[Z"


async def test_notes_keys_levels_and_own_output_work_as_elsewhere(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "a.txt", "content": "x"})])
    async with running(tmp_path, ["Seen.", write, "Done."]) as runner:
        runner.home.mkdir()
        command = 'python3 -c \'import json, sys; print(json.load(sys.stdin)["mode"], "by me")\''
        (runner.home / "config.yaml").write_text(json.dumps({"screen": {"statusCommand": command}}))
        async with at_terminal(runner, size=(120, 40)) as terminal:
            await terminal.wait_for("code·ask", "code by me")
            terminal.type("#always use tabs" + ENTER)
            await terminal.wait_for("Remembered as note-1: always use tabs")
            terminal.type("?" + ENTER)
            await terminal.wait_for("suspend to the shell")
            terminal.type("!echo from me" + ENTER)
            await terminal.wait_for("the model sees this with your next message")
            for level in ("code·accept-edits", "plan·read-only", "code·ask"):
                terminal.type(SHIFT_TAB)
                await terminal.wait_for(level)
            terminal.type("explain this" + ENTER)
            await terminal.wait_for("Seen.")
            terminal.type("/rename about tabs" + ENTER)
            await terminal.wait_for("Renamed to about tabs.")
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
