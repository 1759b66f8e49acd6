"""What a run that failed says."""

from __future__ import annotations

import pytest

from ollm.services.request_reading.failed_checks import (
    describe_failure,
    describe_script_failure,
    find_check,
    find_mended_file,
    measure_failure,
)

HEAD = 'Traceback (most recent call last):\n  File "/x/test_a.py", line 3, in <module>\n    '
TAIL = "\n           ^^^^^^^^^^^^^^^^^^^^^^^\nAssertionError"
DEEP = 'Traceback (most recent call last):\n  File "/x/test_a.py", line 3, in <module>\n    f()\n  File "/x/a.py", line 1, in f\n'


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (f"{HEAD}assert f(3) == [1, 2], f(3){TAIL}: [0]", "f(3) gives [0], but it should give [1, 2]."),
        (f"{HEAD}assert f(3) == [1, 2]{TAIL}", "f(3) should give [1, 2], but it gives something else."),
        (f"{HEAD}assert f(3) == 2, 'no'{TAIL}: no", "f(3) should give 2, but it gives something else."),
        (f"{HEAD}assert not f(1900), '1900'{TAIL}: 1900", "not f(1900) should be true, but it is not."),
        (
            "test_a.py:4: in test_b\n    assert f('a b') == 'AB'\nE   AssertionError: assert 'ab' == 'AB'\nE     - AB",
            "f('a b') gives 'ab', but it should give 'AB'.",
        ),
        (
            "test_a.py:4: in test_b\n    assert f(200) == 150\nE   assert 50.0 == 150",
            "f(200) gives 50.0, but it should give 150.",
        ),
        (
            '  File "/x/test_a.py", line 11, in test_b\n    self.assertEqual(f([(5, 2)]), 13)\nAssertionError: 3 != 13\n\nFAILED (failures=1)',
            "f([(5, 2)]) gives 3, but it should give 13.",
        ),
        (
            f"{DEEP}    return x[0]\nIndexError: list index out of range",
            "a.py crashes. f([]) is None then. It ends with IndexError: list index out of range.",
        ),
        ("make: nothing to do", ""),
    ],
)
def test_what_came_and_what_should_have_come_is_read(output: str, said: str) -> None:
    asked = "a.py crashes.\nf([]) is None then." if "crashes" in said else "a.py is broken."

    assert describe_failure(output, asked) == said


@pytest.mark.parametrize(
    ("asked", "wishes"),
    [
        ("test_a.py fails. Fix a.py so that it passes.", ""),
        ("test_a.py fails. Fix a.py. Don't use a loop", " Don't use a loop."),
        ("test_a.py fails, fix a.py. Keep the name of f! It must stay pure", " Keep the name of f. It must stay pure."),
        ("test_a.py fails. Fix a.py. Then write only the output into out.txt.", ""),
    ],
)
def test_how_it_is_to_be_mended_is_told_too(asked: str, wishes: str) -> None:
    output = f"{HEAD}assert f(3) == 2, f(3){TAIL}: 0"

    assert describe_failure(output, asked) == f"f(3) gives 0, but it should give 2.{wishes}"


@pytest.mark.parametrize(
    ("request_text", "check"),
    [
        ("python test_a.py fails. Fix a.py so that it passes.", "test_a.py"),
        ("test_a.py fails, fix a.py", "test_a.py"),
        ("stats.py crashes with an empty list.", "stats.py"),
        ("The tests are red, please mend the code", "test_a.py"),
        ("Rename a.py to b.py", ""),
    ],
)
def test_the_file_that_is_said_to_fail_is_found(request_text: str, check: str) -> None:
    assert find_check(request_text, ["a.py", "test_a.py"]) == check


@pytest.mark.parametrize(
    ("request_text", "check", "output", "path"),
    [
        ("test_a.py fails. Fix a.py.", "test_a.py", "", "a.py"),
        ("test_a.py fails, fix it", "test_a.py", HEAD, "a.py"),
        ("test_a.py fails, fix it", "test_a.py", DEEP.replace('a.py", line 1', 'b.py", line 1'), "b.py"),
        ("b.py crashes. Mend it.", "b.py", "", "b.py"),
        ("test_a.py fails. Change a.py and b.py.", "test_a.py", "", ""),
        ("test_a.py fails. Fix it, but leave a.py alone.", "test_a.py", HEAD, ""),
    ],
)
def test_the_one_file_that_is_to_be_mended_is_found(request_text: str, check: str, output: str, path: str) -> None:
    names = ["a.py", "b.py", "test_a.py"]

    assert find_mended_file(request_text, check, output, names, lambda _: "from a import f\nimport os\n") == path


def test_fewer_failures_and_a_later_line_are_further() -> None:
    first = measure_failure("test_a.py:4: in test_b\nE  x\n2 failed, 1 passed", "test_a.py")
    fewer = measure_failure("test_a.py:2: in test_b\nE  x\n1 failed, 2 passed", "test_a.py")
    later = measure_failure('  File "/x/test_a.py", line 9, in test_b\n', "test_a.py")

    assert first < fewer < later
    assert measure_failure("FAILED (failures=1, errors=2)", "a.py") == (-3, 0)


def test_a_script_says_what_it_said_last_and_what_is_there() -> None:
    output = "one\nrun.sh: 4: cannot open x.txt\n[exit code 2]"

    said = describe_script_failure("sh run.sh", output, "run.sh fails. It should print 3.", ["run.sh", "a.txt"])

    assert said == "`sh run.sh` ends with `run.sh: 4: cannot open x.txt`. Files here: a.txt, run.sh. It should print 3."
    assert describe_script_failure("sh run.sh", "[exit code 2]", "", []).startswith("`sh run.sh` ends with `an error`.")


def test_of_a_script_of_the_shell_a_later_line_is_further() -> None:
    dash, bash = "a.sh: 4: x: not found\n[exit code 2]", "a.sh: line 7: x: command not found"

    assert [measure_failure(output, "a.sh") for output in (dash, bash)] == [(-1, 4), (-1, 7)]
    assert find_check("a.sh fails, mend it.", ["a.sh"]) == "a.sh"
    assert find_mended_file("a.sh fails, mend it.", "a.sh", dash, ["a.sh", "b.sh", "c.py"], lambda _: "") == "a.sh"
