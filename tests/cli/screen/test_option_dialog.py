"""Lists above the input: what keys do there."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_C, CTRL_D, CTRL_O, DOWN, ENTER, at_terminal
from tests.servers.answers import Answer


async def test_levels_are_chosen_from_a_list_and_by_a_key(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new") as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("/approval" + ENTER)
        await terminal.wait_for("Choose the approval level", "› ask ✓", "nothing asks except protected files")
        terminal.type(DOWN + ENTER)
        await terminal.wait_for("Approval: accept-edits", "code·accept-edits", gone="Choose the approval")
        terminal.type("\x1b[Z")
        await terminal.wait_for("code·read-only")
        terminal.type("/approval yolo" + ENTER)
        await terminal.wait_for("Everything except protected files now runs without asking")
        terminal.type("/modle" + ENTER)
        await terminal.wait_for("Did you mean /model?")
        terminal.type(CTRL_C)
        await terminal.wait_for("Press Ctrl-C again to quit")
        terminal.type("exit" + ENTER)
        assert await terminal.ended() == 0
        terminal.type(CTRL_D)


async def test_any_call_of_any_turn_is_shown_in_full_also_after_coming_back(tmp_path: Path) -> None:
    calls = [Answer(calls=[("shell", {"command": f"seq {first} {first + 40}"})]) for first in (3000, 5000, 7000)]
    script = [calls[0], "One.", calls[1], "Two.", calls[2], "Three.", "Four.", "Five."]
    async with running(tmp_path, script) as runner:
        async with at_terminal(runner, "first one") as terminal:
            await terminal.wait_for("One.")
            for word in ("Two.", "Three."):
                terminal.type("go on" + ENTER)
                await terminal.wait_for(word)
            terminal.type(CTRL_O)
            await terminal.wait_for("7020", "Earlier calls", "Run seq 5000 5040 · 41 lines")
            assert "5020" not in terminal.text()
            terminal.type(ENTER + DOWN + ENTER)
            await terminal.wait_for("5020", "3020", "Earlier calls")
            terminal.type("kind words" + ENTER)
            await terminal.wait_for("› kind words", "Four.", gone="Earlier calls")
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "-c") as terminal:
            await terminal.wait_for("Resumed")
            terminal.type(CTRL_O)
            await terminal.wait_for("7020", "Run seq 3000 3040")
            terminal.type(DOWN + ENTER)
            await terminal.wait_for("3020")
            terminal.type(CTRL_O)
            await terminal.wait_for("collapsed again", gone="Earlier calls")
            terminal.type(CTRL_O)
            await terminal.wait_for("Earlier calls")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
