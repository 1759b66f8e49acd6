"""The size of the repository stays within size_budget.toml."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUDGET = tomllib.loads(Path(__file__).with_name("size_budget.toml").read_text(encoding="utf-8"))
ADVICE = "delete something, or raise tests/house/size_budget.toml and give the reason in that commit"
MAX_TEST_FILE_LINES = 500


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("tree", ["src", "tests", "bench"])
def test_a_tree_stays_within_its_budget(tree: str) -> None:
    files = sorted((ROOT / tree).rglob("*.py"))
    lines = sum(map(count_lines, files))
    print(f"{tree}: {lines} lines in {len(files)} files, budget {BUDGET[tree]}")

    assert lines <= BUDGET[tree]["lines"], ADVICE
    assert len(files) <= BUDGET[tree]["files"], ADVICE


def test_a_test_file_can_be_read_in_one_go() -> None:
    allowed = set(BUDGET["long_test_files"]["names"])
    sizes = {str(path.relative_to(ROOT / "tests")): count_lines(path) for path in (ROOT / "tests").rglob("*.py")}

    assert {name: size for name, size in sizes.items() if size > MAX_TEST_FILE_LINES and name not in allowed} == {}
