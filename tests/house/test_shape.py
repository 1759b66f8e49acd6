"""The shape of the code: names that can be found, sizes that can be read, a test tree for every package."""

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ollm"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 50
VAGUE_BOUND = re.compile(r"_*(LONGEST|SHORTEST|MOST|LEAST|ENOUGH|TIMES|FEWEST|LARGEST|SMALLEST|LIMITS?|MAX|MIN)")
BARE_PARTICIPLE = re.compile(r"_*[a-z]+(ed|en|wn|pt|ld|nt)")
VERBS = re.compile("_*(adopt|build|count|feed|fold|mount|open|paint|print|prompt|shorten|spawn|unfold|widen)")
QUESTION_WORDS = {"what", "whether", "where", "how", "which"}
MAX_QUESTION_PERCENT = 5  # of the docstrings
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def load_modules() -> dict[Path, ast.Module]:
    """Every module, read when the first test asks for it: collecting the tests must stay cheap."""
    gc.disable()  # a million objects, none of them garbage now or later
    found = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    gc.freeze()
    gc.enable()
    return found


@cache
def load_nodes() -> list[tuple[Path, ast.ClassDef | Definition]]:
    """Classes and functions at any depth, without a look into expressions."""
    found: list[tuple[Path, ast.ClassDef | Definition]] = []
    for path, tree in load_modules().items():
        waiting: list[ast.AST] = [tree]
        for node in waiting:
            waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((path, node))
    return found


def definitions() -> Iterator[tuple[Path, Definition]]:
    return ((path, node) for path, node in load_nodes() if not isinstance(node, ast.ClassDef))


def is_property(node: Definition) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_a_class_name_belongs_to_one_class() -> None:
    places = defaultdict(list)
    for path, node in load_nodes():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(f"{path.relative_to(SOURCE)}:{node.lineno}")

    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_bound_carries_its_unit() -> None:
    vague = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {target.id}"
        for path, tree in load_modules().items()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and VAGUE_BOUND.fullmatch(target.id)
    ]

    assert vague == []


def test_a_function_is_not_called_by_a_bare_participle() -> None:
    bare = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for path, node in definitions()
        if BARE_PARTICIPLE.fullmatch(node.name) and not VERBS.fullmatch(node.name) and not is_property(node)
    ]

    assert bare == []


def test_a_module_can_be_read_in_one_go() -> None:
    lines = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert {name: count for name, count in lines.items() if count > MAX_MODULE_LINES} == {}


def test_a_function_can_be_read_at_a_glance() -> None:
    long = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for path, node in definitions()
        if (node.end_lineno or node.lineno) - node.lineno >= MAX_FUNCTION_LINES
    ]

    assert long == []


def test_every_package_has_its_test_tree() -> None:
    packages = {path.relative_to(SOURCE).parts[0] for path in MODULES if len(path.relative_to(SOURCE).parts) > 1}

    assert [name for name in sorted(packages) if not any((ROOT / "tests" / name).rglob("test_*.py"))] == []


def test_a_module_says_what_it_owns() -> None:
    said = {str(path.relative_to(SOURCE)): ast.get_docstring(tree) or "" for path, tree in load_modules().items()}

    assert {name: text for name, text in said.items() if len(re.sub(r"\([^)]*\)", "", text).split()) < 3} == {}


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    nodes = [*load_modules().values(), *(node for _, node in load_nodes())]
    texts = [text for node in nodes if (text := ast.get_docstring(node, clean=False))]
    asking = [text for text in texts if text.split()[0].strip(",.:").lower() in QUESTION_WORDS]

    assert 100 * len(asking) <= MAX_QUESTION_PERCENT * len(texts)
