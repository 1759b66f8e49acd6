"""What a failing test says of the values that came."""

import subprocess
import sys
from pathlib import Path

import pytest

from ollm.services.request_reading.wrong_values import WrongValue, find_wrong_values

CODE = """import unittest


def f(x):
    return x + 1


def boom(x):
    raise IndexError("no")


def is_odd(x):
    return bool(x % 2)


"""
PYTEST = ("pytest", "-q", "--tb=short", "-p", "no:cacheprovider")


def run_line(directory: Path, line: str, *, case: bool) -> tuple[str, str]:
    """What is said of a test with this line, and its text."""
    head = "class T(unittest.TestCase):\n    def test_it(self):\n        " if case else "def test_it():\n    "
    text = f"{CODE}{head}{line}\n"
    (directory / "test_a.py").write_text(text)
    runner = ("unittest",) if case else PYTEST
    done = subprocess.run(
        [sys.executable, "-B", "-m", *runner, "test_a.py"], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode
    return done.stdout + done.stderr, text


@pytest.mark.parametrize(
    ("line", "said", "mended"),
    [
        ("assert f(1) == 3", "f(1) gives 2, not 3", "assert f(1) == 2"),
        ("assert 3 == f(1)", "f(1) gives 2, not 3", "assert 2 == f(1)"),
        ('assert f(1) == 3, "three"', "f(1) gives 2, not 3", "assert f(1) == 2"),
        ("assert f(1) is None", "f(1) gives 2, not None", "assert f(1) == 2"),
        ('assert str(f(1)) == "3"', "str(f(1)) gives '2', not \"3\"", 'assert str(f(1)) == "2"'),
        (
            "assert [f(1), 'x'] == [3, 'x']",
            "[f(1), 'x'] gives [2, 'x'], not [3, 'x']",
            "assert [f(1), 'x'] == [2, 'x']",
        ),
        ("assert is_odd(4)", "is_odd(4) gives False", "assert not is_odd(4)"),
        ("assert not is_odd(f(2)), 'odd'", "is_odd(f(2)) gives True", "assert is_odd(f(2))"),
        ("assert boom(1) == 3", "boom(1) raises IndexError", ""),
        ("self.assertEqual(f(1), 3)", "f(1) gives 2, not 3", "self.assertEqual(f(1), 2)"),
        ("self.assertEqual(3, f(1), 'three')", "f(1) gives 2, not 3", "self.assertEqual(2, f(1), 'three')"),
        ("self.assertTrue(is_odd(2))", "is_odd(2) gives False", "self.assertFalse(is_odd(2))"),
        ("self.assertFalse(is_odd(1))", "is_odd(1) gives True", "self.assertTrue(is_odd(1))"),
        ("self.assertEqual(boom(1), 3)", "boom(1) raises IndexError", ""),
    ],
)
def test_a_wrong_value_is_found_with_the_one_that_came(tmp_path: Path, line: str, said: str, mended: str) -> None:
    output, text = run_line(tmp_path, line, case=line.startswith("self."))

    (found,) = find_wrong_values(output, text)

    assert found == WrongValue(line=line, said=said, mended=mended, raised="raises" in said)


@pytest.mark.parametrize(
    "line",
    [
        "assert f(1) > 5",
        "assert f(1) == f(2)",
        "assert f('a' and 1) == 3 == 3",
        "assert g(1) == 3",
        "assert 'a' * 200 + str(f(1)) == 'b'",
        "self.assertEqual(['a' * 200, f(1)], ['b'])",
        "self.assertIn(f(1), [3])",
        "assert f(1) == 3; assert f(1) == 4",
    ],
)
def test_nothing_is_found_where_it_is_not_plain(tmp_path: Path, line: str) -> None:
    output, text = run_line(tmp_path, line, case=line.startswith("self."))

    assert find_wrong_values(output, text) == []


def test_a_line_counts_only_where_it_is_once_in_the_test(tmp_path: Path) -> None:
    output, text = run_line(tmp_path, "assert f(1) == 3", case=False)

    assert find_wrong_values(output, f"{text}    assert f(1) == 3\n") == []
    assert find_wrong_values(output, CODE) == []
