"""Small changes that a request says in full."""

import pytest

from ollm.services.request_reading.entry_names import MAX_REQUEST_CHARS
from ollm.services.request_reading.plain_changes import find_plain_command, find_plain_steps

FILES = {
    "todo.md": "- [ ] buy paint\n- [ ] rest\n",
    "app.py": "start()\nstop()\n",
    "c.yml": "web:\n  image: a\ndb:\n  image: b\n",
}
PRIMED = "\n\n".join(f"{path}:\n```\n{text}```" for path, text in FILES.items())
ORDERS = ("tick off buy paint", "comment out the call to stop", "add `restart: always` to db", "remove db from c.yml")


def test_each_kind_is_a_step_and_most_are_a_command() -> None:
    commands = [find_plain_command(asked, PRIMED) for asked in ORDERS]
    steps = [find_plain_steps(asked, FILES, {}) for asked in ORDERS]

    assert [command.split()[-1] for command in commands[:3]] == ["todo.md", "app.py", "c.yml"]
    assert [step[0].endswith(f"Now run {command}.") for command, step in zip(commands, steps[:3], strict=False)] == [
        True
    ] * 3
    assert [len(step) for step in steps] == [1, 1, 1, 1]
    assert find_plain_command("What is in c.yml?", PRIMED) == ""
    assert find_plain_steps("What is in c.yml?", FILES, {}) == []


@pytest.mark.parametrize(
    "asked",
    [
        "Write a script fix.py that sets the image of db to c in c.yml",
        "add a function to app.py to remove db from c.yml",
        "Create a test which checks that the image of db in c.yml should be c",
        "a small script to tick off buy paint in todo.md",
        "set the image of db to c in c.yml if it is b",
    ],
)
def test_a_program_that_is_to_do_it_or_a_condition_is_no_such_change(asked: str) -> None:
    assert find_plain_command(asked, PRIMED) == ""
    assert find_plain_steps(asked, FILES, {}) == []


def test_a_value_of_yaml_that_needs_quotes_gets_them() -> None:
    command = find_plain_command("set the image of db to 'a: b' in c.yml", PRIMED)

    assert command == "sed -i '4s/^  image: b$/  image: \"a: b\"/' c.yml"


def test_a_long_request_says_more_than_one_such_change() -> None:
    asked = "tick off buy paint in todo.md\n"

    assert find_plain_command(asked, PRIMED)
    assert find_plain_command(asked + "x" * MAX_REQUEST_CHARS, PRIMED) == ""
    assert find_plain_steps(asked + "x\n" * MAX_REQUEST_CHARS, FILES, {}) == []


def test_a_file_with_other_ends_of_lines_is_left_to_the_model() -> None:
    files = {path: text.replace("\n", "\r\n") for path, text in FILES.items()}

    assert [find_plain_command(asked, PRIMED.replace("\n", "\r\n")) for asked in ORDERS] == [""] * len(ORDERS)
    assert [find_plain_steps(asked, files, {}) for asked in ORDERS] == [[]] * len(ORDERS)
