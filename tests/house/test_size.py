"""The size of the repository stays within size_budget.toml."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUDGET = tomllib.loads(Path(__file__).with_name("size_budget.toml").read_text(encoding="utf-8"))
ADVICE = "delete something, or raise tests/house/size_budget.toml and give the reason in that commit"
MAX_TEST_FILE_LINES = 500
QUESTION_WORDS = {"what", "whether", "where", "how", "which"}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


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


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, Documented)]
    texts = [text for text in map(ast.get_docstring, nodes) if text]
    asking = [text for text in texts if text.split()[0].strip(",.:").lower() in QUESTION_WORDS]

    assert 100 * len(asking) <= BUDGET["docstrings"]["question_words_percent"] * len(texts)
