"""Orders that depend on something, wait for a word, or are forbidden."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.answer_beginnings import begin_first_step
from ollm.services.request_reading.reservations import is_reserved, only_forbids

PRIMED = "Files here: a.py, b.py, notes.txt"


@pytest.mark.parametrize(
    "asked",
    [
        "delete a.py only if nothing imports it",
        "if a.py is unused delete it",
        "Delete a.py if it is empty.",
        "delete notes.txt but ask me first",
        "Before you delete a.py, tell me whether b.py needs it",
        "remove notes.txt unless b.py reads it",
        "Rename a.py to c.py once I confirm.",
        "move notes.txt to old, but not yet",
        "could you delete a.py? wait for my ok",
        "don't rename foo to baz in a.py",
        "never remove notes.txt",
        "Don't run b.py",
    ],
)
def test_nothing_is_done_by_rule_under_a_reservation(asked: str) -> None:
    assert is_reserved(asked)
    assert begin_first_step(asked, PRIMED) == ""
    assert begin_first_step(asked, PRIMED, whole=True) == ""


@pytest.mark.parametrize(
    "asked",
    [
        "delete a.py",
        "Rename foo to baz in a.py. Don't change anything else.",
        "Don't touch b.py, fix a.py.",
        "Don't forget to delete a.py.",
        "f in a.py should return 0 if the list is empty.",
        "If the list is empty, f in a.py must return 0.",
        "Never edit b.py, but add the import to a.py.",
        "Please remove the unused import in a.py.",
    ],
)
def test_what_belongs_to_the_work_itself_is_no_reservation(asked: str) -> None:
    assert not is_reserved(asked)


def test_what_is_forbidden_is_not_taken_for_an_order() -> None:
    begun = begin_first_step("Fix the bug in a.py, but don't rename foo to baz and don't run b.py.", PRIMED, whole=True)

    assert "sed" not in begun
    assert "b.py" not in begun


def test_what_only_forbids_is_no_work() -> None:
    assert only_forbids("Don't run b.py.")
    assert only_forbids("please never delete a.py!")
    assert not only_forbids("Don't run b.py, read it.")
