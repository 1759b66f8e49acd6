"""The mutation runner: it breaks what can be broken, and finds the tests that should notice."""

from pathlib import Path

from bench.mutants.reach import Reach, mark_source, name_mutant
from bench.mutants.sites import find_mutants

SOURCE = '''"""Says whether a number is small."""

LIMIT_COUNT = 3


def is_small(number: int, *, quiet: bool = True) -> bool:
    """A docstring with 4 numbers stays."""
    if number < LIMIT_COUNT and quiet:
        print("small")
        return True
    return False
'''


def test_every_place_that_matters_is_broken_once_and_texts_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(SOURCE, encoding="utf-8")

    found = find_mutants(path)

    assert [(mutant.line, mutant.kind) for mutant in found] == [
        (3, "constant"),
        (6, "constant"),
        (8, "condition"),
        (8, "and/or"),
        (8, "comparison"),
        (9, "call removed"),
        (10, "return"),
        (10, "constant"),
        (11, "return"),
        (11, "constant"),
    ]
    assert b"number <= LIMIT_COUNT" in found[4].apply(path.read_bytes())


def test_a_mutant_is_noted_where_it_would_be_and_meets_the_tests_that_came_past_its_own_first(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(SOURCE, encoding="utf-8")
    found = find_mutants(path)
    numbered = [(at, mutant) for at, mutant in enumerate(found) if mutant.line in {3, 9}]

    marked = mark_source(path.read_bytes(), numbered).decode()

    assert marked.count("note(0)") == 1, "one outside of functions is noted in each of them"
    assert '.note(5)\n        print("small")' in marked
    compile(marked, "small.py", "exec")
    past = {name_mutant(found[5]): ["tests/b.py::far", "tests/a.py::slow", "tests/b.py::failed", "tests/a.py::own"]}
    reach = Reach(past, {"tests/b.py::far": 0.1, "tests/a.py::slow": 9.0, "tests/a.py::own": 1.0})
    assert reach.choose(found[5], "tests/a.py", 10.05) == ["tests/a.py::own", "tests/a.py::slow"]
    assert reach.choose(found[4], "tests/a.py", 10) == []
