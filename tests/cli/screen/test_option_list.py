"""A short list to choose from, and Shift-Tab beside it, in the real chat."""

from pathlib import Path

from ollm.cli.screen.option_list import OptionList
from tests.cli.running import running
from tests.cli.terminal import CTRL_C, CTRL_D, DOWN, ENTER, at_terminal


def test_the_list_starts_at_the_current_word_and_stays_inside() -> None:
    options = OptionList("mode", ["plan", "code", "debug"], "code")
    options.move(5)

    assert options.chosen == "debug"
    options.move(-9)
    assert options.chosen == "plan"
    assert render(options, 40) == [
        "  mode",
        "› plan",
        "  code ✓",
        "  debug",
        "  ↑↓ choose · Enter select · Esc cancel",
    ]


def test_what_a_word_means_stands_beside_it_where_there_is_room() -> None:
    about = {"plan": "changes nothing", "code": "writes and changes code"}
    options = OptionList("mode", ["plan", "code"], "code", about=about)

    assert render(options, 60)[1:3] == ["  plan    changes nothing", "› code ✓  writes and changes code"]
    assert render(options, 24)[1:3] == ["  plan    changes…", "› code ✓  writes and…"]
    assert render(options, 18)[1:3] == ["  plan", "› code ✓"]


def render(options: OptionList, width: int) -> list[str]:
    return "".join(text for _, text in options.render_lines(width)).split("\n")


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
