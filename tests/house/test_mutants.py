"""The mutants: every named one fits the code, and a change counts as noticed only if its test passes without it."""

from pathlib import Path

import pytest
from bench.mutants import ROOT, NamedJudge, draw_modules, read_named


def test_a_named_mutant_fits_one_place_and_has_its_test() -> None:
    judge = NamedJudge(ROOT)
    for mutant in read_named():
        path, _ = judge.find_places(mutant["before"], mutant["test"], mutant.get("file", ""))
        compile(path.read_text(encoding="utf-8").replace(mutant["before"], mutant["after"]), mutant["what"], "exec")


def test_a_seed_draws_the_same_places_again() -> None:
    assert draw_modules(["policy"], 5, 7) == draw_modules(["policy"], 5, 7) != draw_modules(["policy"], 5, 8)


@pytest.mark.parametrize(("expected", "noticed"), [("== 3", True), ("< 9", False), ("== 4", False)])
def test_a_change_is_noticed_by_a_test_that_passes_without_it(
    expected: str, noticed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which takes most of the time of five runs
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # bytecode of the same second and size would count as current
    (tmp_path / "src/ollm").mkdir(parents=True)
    (tmp_path / "src/ollm/counting.py").write_text("STEP = 1\n\n\ndef add(number):\n    return number + STEP\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_counting.py").write_text(
        "import subprocess, sys\n\n\ndef test_counts():\n"
        "    code = 'import sys; sys.path.insert(0, \"src/ollm\"); import counting; print(counting.add(2))'\n"
        f"    assert int(subprocess.check_output([sys.executable, '-c', code])) {expected}\n"
    )

    assert NamedJudge(tmp_path).is_noticed("counts up", "number + STEP", "number - STEP", "test_counts") is noticed
    assert "number + STEP" in (tmp_path / "src/ollm/counting.py").read_text()
