"""Requests of which one change is all."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.single_orders import is_done_by, is_single_order


@pytest.mark.parametrize(
    "asked",
    [
        "TAX in shop.py should be 7",
        "TAX in shop.py should be 7. Change nothing else.",
        "Could you set the port in server.ini to 8080?",
        "Rename foo to bar in a.py.",
        "Add a docstring to load in a.py",
        "turn off debug in local.env",
        "Please add a docstring to load in a.py. Thanks!",
    ],
)
def test_one_change_is_all_of_it(asked: str) -> None:
    assert is_single_order(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "Set A to 1 and B to 2 in conf.py",
        "Rename foo to bar in a.py and b.py.",
        "Rename foo to bar everywhere.",
        "Set x to 2 in a.py, then run it.",
        "Fix the bug in a.py.",
        "Change x in a.py. Update the README.md.",
        "a.py should print the total",
        "Make sure that a.py works with Python 3.11",
        "What is in a.py?",
        "Sort the names",
    ],
)
def test_more_may_be_wanted(asked: str) -> None:
    assert not is_single_order(asked)


@pytest.mark.parametrize(
    ("asked", "command", "done"),
    [
        ("Rename load to fetch in a.py and b.py.", r"sed -i 's/\bload\b/fetch/g' a.py b.py", True),
        ("Rename load to fetch in a.py and b.py.", r"sed -i 's/\bload\b/fetch/g' a.py", False),
        ("Rename load to fetch in a.py and add a test to b.py.", r"sed -i 's/\bload\b/fetch/g' a.py b.py", False),
        ("Rename load to fetch in a.py, then run it.", r"sed -i 's/\bload\b/fetch/g' a.py", False),
        ("a.py fails.", "python a.py", False),
    ],
)
def test_the_command_that_the_words_say_is_all_of_it(asked: str, command: str, done: bool) -> None:
    assert is_done_by(asked, "Files here: a.py, b.py", command) is done
