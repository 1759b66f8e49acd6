"""Boxes that are to be ticked or emptied."""

from pathlib import Path

import pytest

from ollm.services.request_reading.check_boxes import find_box_command, find_box_steps
from tests.services.request_reading.applied_commands import apply_command

HOUSE = "# House\n\n- [x] call the plumber\n- [ ] buy paint\n- [ ] paint the fence\n- [ ] return the *ladder* (Tom's)\n"
SHOWN = f"\n\nFiles here: app.py, todo.md\n\ntodo.md:\n```\n{HOUSE}```"


@pytest.mark.parametrize(
    ("asked", "old", "new"),
    [
        ("tick off 'buy paint' in todo.md", "[ ] buy", "[x] buy"),
        ("Please check off buy paint in todo.md.", "[ ] buy", "[x] buy"),
        ("In todo.md, mark the item `Buy paint` as done", "[ ] buy", "[x] buy"),
        ("mark the fence as completed", "[ ] paint the fence", "[x] paint the fence"),
        ("cross buy paint off the list", "[ ] buy", "[x] buy"),
        ("cross off the ladder on my list", "[ ] return", "[x] return"),
        ("tick the box of 'paint the fence' in todo.md and tell me what is left", "[ ] paint", "[x] paint"),
        ("mark paint the fence done in todo.md", "[ ] paint", "[x] paint"),
        ("untick 'call the plumber' in todo.md", "[x] call", "[ ] call"),
        ("Mark the plumber task as not done in todo.md", "[x] call", "[ ] call"),
        ("set call the plumber to open in todo.md", "[x] call", "[ ] call"),
    ],
)
def test_the_words_of_one_item_are_a_command(tmp_path: Path, asked: str, old: str, new: str) -> None:
    command = find_box_command(asked, SHOWN)

    assert apply_command(tmp_path, "todo.md", HOUSE, command) == HOUSE.replace(old, new)
    (step,) = find_box_steps(asked, {"todo.md": HOUSE})
    assert step.endswith(f"is not changed in todo.md. Now run {command}.")
    assert find_box_steps(asked, {"todo.md": HOUSE.replace(old, new)}) == []


def test_several_items_and_one_that_has_an_and_in_it(tmp_path: Path) -> None:
    asked = "tick off buy paint, the fence and 'return the ladder (Tom's)' in todo.md"
    after = apply_command(tmp_path, "todo.md", HOUSE, find_box_command(asked, SHOWN))
    assert after == HOUSE.replace("[ ]", "[x]")

    text = "1. [X] oil\n2. [ ] salt and pepper\n"
    command = find_box_command("check off salt and pepper", f"todo.md:\n```\n{text}```")
    assert apply_command(tmp_path, "todo.md", text, command) == text.replace("[ ]", "[X]")

    both = "tick off buy paint and untick call the plumber in todo.md"
    after = apply_command(tmp_path, "todo.md", HOUSE, find_box_command(both, SHOWN))
    assert after == HOUSE.replace("[x]", "[ ]").replace("[ ] buy", "[x] buy")


@pytest.mark.parametrize(
    "asked",
    [
        "tick off paint in todo.md",  # two of them
        "tick off everything in todo.md",
        "tick off 'buy paint' and 'mow the lawn' in todo.md",
        "tick off 'call the plumber' in todo.md",  # it is
        "tick off 'buy paint' in list.md",
        "remove 'buy paint' from todo.md",
        "Which items are ticked off in todo.md?",
        "Is 'buy paint' ticked off in todo.md?",
        "If the shop is open, tick off 'buy paint' in todo.md",
        "check whether buy paint is in todo.md",
        "Don't tick off 'buy paint' in todo.md",
        "check the fence in todo.md",
    ],
)
def test_other_words_are_none(asked: str) -> None:
    assert find_box_command(asked, SHOWN) == ""
    assert find_box_steps(asked, {"todo.md": HOUSE}) == []


def test_what_comes_after_another_order_is_a_step_and_no_first_command() -> None:
    asked = "Run app.py and tick off 'buy paint' in todo.md"

    assert find_box_command(asked, SHOWN) == ""
    assert len(find_box_steps(asked, {"todo.md": HOUSE, "app.py": "- [ ] buy paint\n"})) == 1
    assert find_box_steps("tick off 'buy paint'", {"a.md": HOUSE, "b.md": HOUSE}) == [], "in which?"
    assert find_box_command("tick off 'buy paint'", SHOWN.replace("todo.md:", "todo.md is long:")) == ""
