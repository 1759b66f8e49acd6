"""A request without its courtesies, and whether it forbids changes."""

import pytest

from ollm.services.request_reading.plain_words import forbids_change, strip_courtesy


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("Could you please rename a.py to b.py?", "rename a.py to b.py."),
        ("Hi, can you delete a.py", "delete a.py"),
        ("I'd like you to add a test.", "add a test."),
        ("Rename a.py to b.py", "Rename a.py to b.py"),
        ("Can a.py be deleted?", "Can a.py be deleted?"),
        ("Hello.py crashes.", "Hello.py crashes."),
    ],
)
def test_courtesies_go(asked: str, plain: str) -> None:
    assert strip_courtesy(asked) == plain


@pytest.mark.parametrize(
    ("asked", "forbidden"),
    [
        ("Review a.py, but do not change anything.", True),
        ("Look at it without changing any files", True),
        ("Don't edit the code, only tell me", True),
        ("Find the bug; change nothing.", True),
        ("Fix a.py but do not change the tests.", False),
        ("Change a.py", False),
        ("Let it not write the header", False),
    ],
)
def test_changes_are_forbidden(asked: str, forbidden: bool) -> None:
    assert forbids_change(asked) is forbidden
