"""The mutation runner: it breaks what can be broken, and finds the tests that should notice."""

from pathlib import Path

from bench.mutants.__main__ import choose_tests
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


def test_the_tests_of_a_module_begin_with_its_own() -> None:
    chosen = choose_tests(Path("src/ollm/policy/engine.py"))

    assert chosen[0] == "tests/policy/test_engine.py"
    assert "tests/policy/test_grants.py" in chosen
