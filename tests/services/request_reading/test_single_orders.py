"""Requests of which one change is all."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.single_orders import is_single_order


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
