"""The size of the repository stays within size_budget.toml."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUDGET = tomllib.loads(Path(__file__).with_name("size_budget.toml").read_text(encoding="utf-8"))
MAX_TEST_FILE_LINES = 500
MAX_SRC_LINES = 82_000
MAX_SRC_STATEMENTS = 45_500
MAX_ROOM_LINES = 82_000


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def is_statement(node: ast.AST) -> bool:
    """Leave out imports, docstrings and the ellipses of protocols."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return not (isinstance(node.value.value, str) or node.value.value is ...)
    return isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)


def name_room(path: Path) -> str:
    parts = path.relative_to(ROOT / "src" / "ollm").parts
    if parts[:2] == ("system", "sandbox"):
        return "system/sandbox"
    return parts[0] if len(parts) > 1 else "."


@pytest.mark.parametrize("tree", ["src", "tests", "bench"])
def test_a_tree_stays_within_its_budget(tree: str) -> None:
    files = sorted((ROOT / tree).rglob("*.py"))
    lines = sum(map(count_lines, files))
    print(f"{tree}: {lines} lines in {len(files)} files, budget {BUDGET[tree]}")

    assert lines <= BUDGET[tree]["lines"]
    assert len(files) <= BUDGET[tree]["files"]


def test_every_room_stays_within_its_budget() -> None:
    lines: Counter[str] = Counter()
    for path in (ROOT / "src" / "ollm").rglob("*.py"):
        lines[name_room(path)] += count_lines(path)

    assert {room: size for room, size in lines.items() if size > BUDGET["rooms"].get(room, 0)} == {}


def test_the_source_stays_within_its_statements() -> None:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py"))

    assert sum(is_statement(node) for tree in trees for node in ast.walk(tree)) <= BUDGET["src"]["statements"]


def test_the_pages_stay_within_their_budget() -> None:
    assert sum(map(count_lines, (ROOT / "src").rglob("*.js"))) <= BUDGET["pages"]["lines"]


def test_a_budget_rises_only_if_another_falls() -> None:
    assert sum(BUDGET["rooms"].values()) <= MAX_ROOM_LINES
    assert BUDGET["src"]["lines"] <= MAX_SRC_LINES
    assert BUDGET["src"]["statements"] <= MAX_SRC_STATEMENTS


def test_a_test_file_can_be_read_in_one_go() -> None:
    allowed = set(BUDGET["long_test_files"]["names"])
    sizes = {str(path.relative_to(ROOT / "tests")): count_lines(path) for path in (ROOT / "tests").rglob("*.py")}

    assert {name: size for name, size in sizes.items() if size > MAX_TEST_FILE_LINES and name not in allowed} == {}
