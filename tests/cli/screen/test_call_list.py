"""The calls of earlier turns, opened by a key in the real chat."""

from pathlib import Path

from ollm.cli.screen.call_list import CallList, describe_size
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, CTRL_O, DOWN, ENTER, at_terminal
from tests.servers.answers import Answer


def test_each_call_is_named_with_how_much_it_brought() -> None:
    assert [describe_size("Run a", text) for text in ("", "x", "x\ny\n")] == [
        "Run a · 0 lines",
        "Run a · 1 line",
        "Run a · 2 lines",
    ]
    assert all(len(text.rstrip("\n")) < 30 for _, text in CallList([("x" * 80, "")], print).render_lines(30))


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
