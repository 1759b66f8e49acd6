"""Failing tests of a model's own."""

import pytest

from ollm.services.request_reading.own_tests import begin_own_test, describe_own_test

TEXT = "from a import f\n\n\ndef test_f():\n    assert f(7) == 1\n    assert f(40) == 3\n"
SAID = "test_a.py:6: in test_f\n    assert f(40) == 3\nE   assert 2 == 3\nE    +  where 2 = f(40)\n"
RAISED = "test_a.py:6: in test_f\n    assert f(40) == 3\na.py:2: in f\n    return x\nE   KeyError: 1\n"
TOLD = "python test_a.py fails: f(40) gives 2, not 3. Now mend test_a.py."
CHANGE = "test_a.py\n```diff\n-    assert f(40) == 3\n+    assert f(40) == 2\n```\n"
REMOVAL = "test_a.py\n```diff\n-    assert f(7) == 1\n-    assert f(40) == 3\n+    assert f(7) == 1\n```\n"


def test_what_came_is_told_of_a_new_test() -> None:
    texts = {"test_a.py": TEXT}
    for changed, before, told in (
        (["test_a.py"], {}, TOLD),
        (["test_a.py", "out.txt"], {}, TOLD),
        (["a.py", "test_a.py"], {}, "python test_a.py fails: f(40) gives 2, not 3: mend it."),
        (["test_a.py"], {"test_a.py": ""}, ""),
        (["a.py"], {}, ""),
    ):
        assert describe_own_test("python test_a.py", changed, before, texts, SAID) == told
    assert describe_own_test("python test_b.py", ["test_a.py"], {}, texts, SAID) == ""
    assert describe_own_test("python test_a.py", ["test_a.py"], {}, texts, "1 passed") == ""


@pytest.mark.parametrize(
    ("request_", "settled"),
    [
        ("a.f has no test. add test_a.py", True),
        ("Write tests for f in test_a.py and make sure they pass.", True),
        ("Write a unit test for f into test_a.py. The tests should all pass.", True),
        ("Add test_a.py with a test or two for f", True),
        ("Add test_a.py: f(40) is 3", False),
        ("Add test_a.py with 40 as an example", False),
        ("Add test_a.py. f should round up", False),
        ("Add test_a.py which checks that f rounds up", False),
        ("f is wrong for large numbers. Add test_a.py for it", False),
        ("Fix f and add test_a.py", False),
        ("Write a function f in a.py and a test for it in test_a.py", False),
    ],
)
def test_the_value_that_came_is_taken_where_nothing_is_said_of_it(request_: str, settled: bool) -> None:
    assert begin_own_test(request_, "test_a.py", TEXT, TOLD, ["", SAID]) == (CHANGE if settled else "")


@pytest.mark.parametrize(
    ("request_", "settled"),
    [
        ("Write test_a.py: check that f gives the number of tens", True),
        ("f has no test yet, write test_a.py", True),
        ("f isn't tested. Write test_a.py", True),
        ("Write test_a.py for f, unknown numbers too", False),
        ("Write test_a.py: f must not raise an error", False),
        ("Write test_a.py: with 40, too", False),
        ("Write test_a.py for the bug in f", False),
    ],
)
def test_a_line_on_which_an_error_comes_goes_where_nothing_is_said_of_it(request_: str, settled: bool) -> None:
    told = "python test_a.py fails: f(40) raises KeyError. Now mend test_a.py."

    assert begin_own_test(request_, "test_a.py", TEXT, told, [RAISED]) == (REMOVAL if settled else "")
    alone = TEXT.replace("    assert f(7) == 1\n", "")
    assert begin_own_test(request_, "test_a.py", alone, told, [RAISED]) == "", "a test compares something"


def test_a_letter_is_spoken_of_in_quotes_alone() -> None:
    text, said = (words.replace("f(40)", "f('a')") for words in (TEXT, SAID))
    told = TOLD.replace("f(40)", "f('a')")

    assert begin_own_test("add a test for f in test_a.py", "test_a.py", text, told, [said])
    assert not begin_own_test("add a test for f of 'a' in test_a.py", "test_a.py", text, told, [said])
    assert not begin_own_test("add a test for f", "test_a.py", text, told.replace("gives", "is"), [said])
    assert not begin_own_test("add a test for f", "test_a.py", text, told, [])
