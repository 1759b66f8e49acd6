"""Tests that a request wants added to a file of tests."""

import pytest

from ollm.services.request_reading.asked_tests import (
    begin_new_test,
    describe_missing_test,
    find_asked_test,
    find_missing_test,
)

OLD = "from convert import a, b\n\n\ndef test_one():\n    assert a(32) == 0\n"
MORE = f"{OLD}    assert b(100) == 212\n"
NEW = f"{OLD}\n\ndef test_two():\n    assert b(100) == 212\n"
ASKED = "Write a second test in test_convert.py which checks that b(100) is 212."


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        "add another test to test_convert.py",
        "Add a test for b to `test_convert.py`.",
        "Please put a new unit test that checks b into test_convert.py.",
        "b has no test. Add one more test to test_convert.py",
        "In test_convert.py, add a test that b(100) is 212.",
        "I need another test for negative values in test_convert.py",
        "extend test_convert.py by a test for b",
        "Fix b and add two tests to test_convert.py",
    ],
)
def test_the_file_that_gets_a_test_is_found(asked: str) -> None:
    assert find_asked_test(asked)[0] == "test_convert.py"


@pytest.mark.parametrize(
    "asked",
    [
        "Fix the test in test_convert.py.",
        "Does test_convert.py have a second test?",
        "Write a second test in convert.py.",
        "Write a second test in convert.test.js.",
        "Add an assertion for b to test_one in test_convert.py.",
        "Rename the test in test_convert.py.",
        "Don't add a test to test_convert.py.",
    ],
)
def test_other_requests_want_none(asked: str) -> None:
    assert find_asked_test(asked) == ("", 0)


def test_a_test_begins_with_its_head_where_the_others_are_functions() -> None:
    shown = f"\n\nFiles here: test_convert.py\n\ntest_convert.py:\n```\n{OLD.rstrip()}\n```"

    assert begin_new_test(ASKED, shown) == "test_convert.py\n```python\ndef test_"
    assert begin_new_test(f"Fix b, then {ASKED.lower()}", shown) == ""
    assert begin_new_test(f"Fix b. {ASKED}", shown) == ""
    assert begin_new_test(f"Fix b. {ASKED}", shown, first=False) != ""
    assert begin_new_test(ASKED, shown.replace("def test_one", "class Tests:\n    def test_one")) == ""
    assert begin_new_test(ASKED, shown.replace("def test_one", "print")) == ""
    assert begin_new_test(ASKED, shown.replace("test_convert.py:\n", "test_convert.py is long:\n")) == ""


def test_an_assertion_in_a_test_that_is_there_is_no_new_test() -> None:
    assert describe_missing_test("test_convert.py", OLD, MORE, ASKED) == "test_convert.py has no new test"
    assert describe_missing_test("test_convert.py", OLD, NEW, ASKED) == ""
    assert describe_missing_test("test_convert.py", OLD, OLD, ASKED) == ""
    assert describe_missing_test("test_convert.py", "import a\n", "import b\n", ASKED) == ""  # it is written otherwise
    cases = f"{OLD}\n\n@pytest.mark.parametrize('n', [1])\ndef test_n(n):\n    assert n\n"
    assert describe_missing_test("test_convert.py", cases, cases.replace("[1]", "[1, 2]"), ASKED) == ""
    assert describe_missing_test("test_other.py", OLD, MORE, ASKED) == ""
    assert describe_missing_test("test_convert.py", OLD, MORE, "Check b, too, in test_one of test_convert.py.") == ""


def test_it_is_a_step_that_is_left() -> None:
    step = "test_convert.py has no new test. Now change test_convert.py."

    assert find_missing_test(ASKED, {"test_convert.py": OLD}, {"test_convert.py": MORE}) == [step]
    assert find_missing_test(ASKED, {"test_convert.py": OLD}, {"test_convert.py": NEW}) == []
    assert find_missing_test(ASKED, {}, {"test_convert.py": MORE}) == []
