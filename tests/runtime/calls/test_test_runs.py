"""Tests that are run as a program."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.runtime.calls.test_runs import calls_own_tests, only_defines_tests, run_tests

QUIET = "from leap import is_leap\n\n\ndef test_it():\n    assert is_leap(2000)\n"


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        (QUIET, True),
        ('"""Tests."""\nimport unittest\n\n\nclass TestLeap(unittest.TestCase):\n    pass\n', True),
        (f"{QUIET}\n\ntest_it()\n", False),
        (f"{QUIET}\n\nif __name__ == '__main__':\n    test_it()\n", False),
        ("from leap import is_leap\n\nassert is_leap(2000)\n", False),
        ("def helper():\n    return 'test'\n", False),
        ("def test_it(:\n", False),
        ("", False),
    ],
)
def test_a_file_only_defines_tests_where_nothing_calls_them(text: str, quiet: bool) -> None:
    assert only_defines_tests(text) is quiet


@pytest.mark.parametrize(
    ("end", "calls"),
    [
        ("test_it()\n", True),
        ("if __name__ == '__main__':\n    test_it()\n    print('All pass.')\n", True),
        ("test_it()\nprint('ok')\n", True),
        ("", False),
        ("test_it(1)\n", False),
        ("is_leap(4)\n", False),
        ("if __name__ == '__main__':\n    import sys\n    sys.exit(test_it())\n", False),
        ("for _ in range(3):\n    test_it()\n", False),
        ("import unittest\nunittest.main()\n", False),
        ("(", False),
    ],
)
def test_a_file_calls_its_own_tests_and_does_nothing_else(
    end: str, calls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: "/bin/pytest")
    text = f"{QUIET}\n\n{end}"

    assert calls_own_tests(text) is calls
    if end:
        ran = run_tests("python test_a.py", {"test_a.py": text}.get, ["test_a.py"])
        assert ("pytest" in ran) is calls
        assert run_tests("python test_a.py", {"test_a.py": text}.get) == "python test_a.py", "it was there before"


def test_such_a_file_is_run_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "test_a.py": QUIET,
        "test_u.py": "import unittest\n\n\nclass TestA(unittest.TestCase):\n    pass\n",
        "a.py": "x = 1\n",
    }
    monkeypatch.setattr(shutil, "which", lambda _name: "/bin/pytest")

    quiet = "python -B -W ignore::DeprecationWarning -m pytest -q --tb=short -p no:cacheprovider test_a.py"
    assert run_tests("python test_a.py", files.get) == quiet
    assert run_tests("python3 ./test_u.py; echo done", files.get) == "python3 -B -m unittest ./test_u.py; echo done"
    for same in (
        "python a.py",
        "python -m pytest test_a.py",
        "cat test_a.py",
        "python test_a.py --all",
        "python none.py",
    ):
        assert run_tests(same, files.get) == same


def test_without_pytest_the_functions_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    command = run_tests("python test_a.py", {"test_a.py": QUIET}.get).replace("python", sys.executable, 1)
    (tmp_path / "test_a.py").write_text(QUIET)
    found = []
    for years in (4, 2000):
        (tmp_path / "leap.py").write_text(f"def is_leap(year):\n    return year == {years}\n")
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        found.append((done.returncode, "assert is_leap(2000)" in done.stderr, done.stdout))

    assert found == [(1, True, ""), (0, False, "all tests pass\n")]


def test_what_a_plugin_says_of_itself_is_left_out_and_nothing_of_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: "/bin/pytest")
    test = (
        "import warnings\n\n\ndef test_a():\n    with warnings.catch_warnings(record=True) as caught:\n"
        "        warnings.warn('said by the code', stacklevel=1)\n    assert len(caught) == 1\n\n\n"
        "def test_b():\n    assert 1 + 1 == 3\n"
    )
    plugin = (
        "import warnings\n\nimport pytest\n\n\ndef pytest_configure():\n"
        "    warnings.warn(pytest.PytestDeprecationWarning('set the loop scope'), stacklevel=1)\n"
    )
    (tmp_path / "test_a.py").write_text(test)
    (tmp_path / "conftest.py").write_text(plugin)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = run_tests("python test_a.py", {"test_a.py": test}.get).replace("python", sys.executable, 1)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr

    assert done.returncode == 1
    assert "assert (1 + 1) == 3" in said
    assert "1 failed, 1 passed" in said
    assert "loop scope" not in said
