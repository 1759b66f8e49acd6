"""The input line of the real chat: its completions."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_C, CTRL_D, at_terminal


async def test_agents_are_completed(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.home / "agents").mkdir(parents=True)
        (runner.home / "agents" / "reviewer.md").write_text("Review.")
        async with at_terminal(runner, "--new") as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("ask @agent-r")
            await terminal.wait_for("agent-reviewer")
            terminal.type("\t")
            await terminal.wait_for("ask @agent-reviewer")


async def test_commands_are_completed_with_their_help(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new") as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("/perm")
        await terminal.wait_for("/permissions", "Show what runs without asking.")
        terminal.type(CTRL_C)
        await terminal.settle(0.3)
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
