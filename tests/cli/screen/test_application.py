"""The application the chat runs in, as the person wants it."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_C, CTRL_D, at_terminal


async def test_a_short_list_of_completions_leaves_no_gap_above_the_status_line(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.workspace / "cart.py").write_text("")
        async with at_terminal(runner, "--new", size=(80, 24)) as terminal:
            await terminal.wait_for("code·ask")
            terminal.type("/")
            await terminal.wait_for("/compact")
            terminal.type(CTRL_C + "@ca")
            await terminal.wait_for("@ca", " cart.py", gone="/compact")
            await terminal.settle(0.3)
            lines = terminal.screen().splitlines()
            place = next(place for place, line in enumerate(lines) if line.strip() == "cart.py")
            assert "code·ask" in lines[place + 1]
            terminal.type(CTRL_C + CTRL_D)
            await terminal.ended()
