"""What a failing test says of the values that came."""

import subprocess
import sys
from typing import NamedTuple

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


WRONG = [
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
]
NOT_PLAIN = [
    "assert f(1) > 5",
    "assert f(1) == f(2)",
    "assert f('a' and 1) == 3 == 3",
    "assert g(1) == 3",
    "assert 'a' * 200 + str(f(1)) == 'b'",
    "self.assertEqual(['a' * 200, f(1)], ['b'])",
    "self.assertIn(f(1), [3])",
    "assert f(1) == 3; assert f(1) == 4",
]


class Run(NamedTuple):
    """A file of tests with one line each, and what is said of it."""

    text: str
    output: str

    def find(self, line: str) -> list[WrongValue]:
        return [found for found in find_wrong_values(self.output, self.text) if found.line == line]


@pytest.fixture(scope="module", params=["pytest", "unittest"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All lines at once: a process for each would take long."""
    lines = [*(line for line, _, _ in WRONG), *NOT_PLAIN]
    plain = [f"def test_{number}():\n    {line}\n\n\n" for number, line in enumerate(lines) if line[:5] != "self."]
    cases = [
        f"    def test_{number}(self):\n        {line}\n\n" for number, line in enumerate(lines) if line[:5] == "self."
    ]
    text = f"{CODE}{''.join(plain)}class T(unittest.TestCase):\n{''.join(cases)}"
    directory = tmp_path_factory.mktemp("run")
    (directory / "test_a.py").write_text(text)
    command = [sys.executable, "-B", "-m", *(PYTEST if request.param == "pytest" else ("unittest",)), "test_a.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode
    return Run(text, done.stdout + done.stderr)


@pytest.mark.parametrize(("line", "said", "mended"), WRONG)
def test_a_wrong_value_is_found_with_the_one_that_came(run: Run, line: str, said: str, mended: str) -> None:
    found = [(wrong.said, wrong.mended, wrong.raised) for wrong in run.find(line)]

    assert found == ([(said, mended, "raises" in said)] if line in run.output else [])


def test_a_line_is_begun_up_to_a_value_at_its_end(run: Run) -> None:
    begun = {wrong.line: wrong.begun for wrong in find_wrong_values(run.output, run.text)}

    assert begun["self.assertEqual(f(1), 3)"] == "self.assertEqual(f(1), "
    assert begun["self.assertEqual(3, f(1), 'three')"] == ""
    assert begun.get("assert f(1) is None", "assert f(1) == ") == "assert f(1) == "


def test_each_runner_says_its_lines(run: Run) -> None:
    assert "self.assertEqual(f(1), 3)" in run.output
    assert len(find_wrong_values(run.output, run.text)) in (5, len(WRONG)), "unittest runs classes alone"


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_nothing_is_found_where_it_is_not_plain(run: Run, line: str) -> None:
    assert run.find(line) == []


def test_a_line_counts_only_where_it_is_once_in_the_test(run: Run) -> None:
    line = "self.assertEqual(f(1), 3)"

    assert find_wrong_values(run.output, f"{run.text}    {line}\n") != find_wrong_values(run.output, run.text)
    assert find_wrong_values(run.output, CODE) == []
