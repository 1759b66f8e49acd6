"""The files that a request wants changed or made."""

import pytest

from ollm.services.request_reading.wanted_files import find_changed_files, find_sources, find_wanted_files, is_expected


@pytest.mark.parametrize(
    ("request_", "wanted", "changed"),
    [
        ("Create three files a.txt, b.txt and c.txt, each with a letter.", ["a.txt", "b.txt", "c.txt"], []),
        ("Order the lines of a.txt by number.", ["a.txt"], ["a.txt"]),
        ("Set the limit in a.py to 3 and write a note into n.txt.", ["a.py", "n.txt"], ["a.py"]),
        ("Write a program that reads a.csv.", [], []),
        ("Change the host in a.yaml to db.internal.", ["a.yaml"], ["a.yaml"]),
        ("get rid of a.txt", [], []),
        ("Take the header of a.csv and put it in h.txt.", ["h.txt"], []),
        ("Make a.py save its output to out.txt.", ["a.py"], []),
        ("What is in a.txt?", [], []),
    ],
)
def test_what_is_to_change_and_what_is_new(request_: str, wanted: list[str], changed: list[str]) -> None:
    assert find_wanted_files(request_) == wanted
    assert find_changed_files(request_) == [name for name in changed if name in wanted]


def test_data_that_others_are_made_of_is_only_read() -> None:
    assert find_sources("Extract all names from a.csv to b.txt.", ["b.txt"]) == {"a.csv"}
    assert find_sources("Take the header of a.csv and put it in h.txt.", ["h.txt"]) == {"a.csv"}
    assert find_sources("Extract f from a.py into b.py.", ["b.py"]) == set()
    assert find_sources("Sort a.txt.", []) == set()


@pytest.mark.parametrize(
    ("asked", "files"),
    [
        ("Write is_cheap(price) in shop.py, and a test for it in test_cheap.py", ["test_cheap.py"]),
        ("Write a function f in a.py and two tests for f(x) in test_a.py.", ["test_a.py"]),
        ("There is a test in test_a.py that shows the bug. Fix a.py.", []),
    ],
)
def test_a_test_that_is_written_besides_is_wanted(asked: str, files: list[str]) -> None:
    assert [name for name in find_wanted_files(asked) if name.startswith("test_")] == files


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("remove the cache setting from redis.conf", True),
        ("fix the typo in redis.conf", True),
        ("change the timeout in redis.conf to 20", True),
        ("move MAX from a.py to redis.conf", False),
        ("add a setting to redis.conf", False),
        ("rename a.conf to redis.conf", False),
        ("update a.py and write the rest into redis.conf", False),
    ],
)
def test_what_is_changed_is_not_made_up(request_: str, expected: bool) -> None:
    assert is_expected(request_, "redis.conf") is expected
