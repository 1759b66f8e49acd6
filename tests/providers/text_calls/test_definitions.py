"""Functions and classes of a block in the place of their namesakes."""

import pytest

from ollm.providers.text_calls.block_edits import read_change
from ollm.providers.text_calls.definitions import find_definitions, place_definitions, remove_definitions

LONG = "".join(
    f'def total_{noun}s(items):\n    """What all of them cost."""\n    total = 0\n    for item in items:\n'
    f'        total += item["price"]\n    return total\n\n\ndef find_{noun}(items, name):\n    for item in items:\n'
    f'        if item["name"] == name:\n            return item\n    return None\n\n\n'
    for noun in ("book", "lamp", "chair", "table")
)


CLASS = (
    'class Team:\n    """One team."""\n\n    def __init__(self, title):\n        self.title = title\n        self.members = []\n'
    + "".join(f"\n    def method_{n}(self):\n        return {n}\n" for n in range(12))
)


def test_a_function_takes_the_place_of_the_one_with_its_name() -> None:
    new = "def total_chairs(items):\n    return 0\n"
    change = read_change("store.py", new, LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert LONG.count(target) == 1
    assert target.startswith("def total_chairs(items):")
    assert target.endswith("return total")
    assert replacement == new.rstrip()


def test_a_new_function_is_added_behind_the_last() -> None:
    change = read_change("store.py", "import math\n\n\ndef area(r):\n    return math.pi * r\n", LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert target.startswith("def find_table")
    assert replacement == f"{target}\n\n\ndef area(r):\n    return math.pi * r"


@pytest.mark.parametrize(
    "body",
    [
        "    def count(self):\n        return 5\n",
        "class Team:\n    def count(self):\n        return 5\n",
        "class Team:\n    # ... existing code ...\n\n    def count(self):\n        return 5\n",
    ],
)
def test_a_method_is_added_to_its_class_and_the_others_stay(body: str) -> None:
    change = read_change("team.py", body, CLASS, shown_whole=False)

    ((target, replacement),) = change.edits
    assert CLASS.count(target) == 1
    after = CLASS.replace(target, replacement)
    scope: dict[str, type] = {}
    exec(after, scope)
    assert scope["Team"]("x").count() == 5
    assert scope["Team"]("x").method_11() == 11


def test_a_function_that_differs_in_its_name_alone_is_the_old_one_renamed() -> None:
    old = LONG[LONG.index("def total_lamps") : LONG.index("def find_lamp")].rstrip()
    change = read_change("store.py", old.replace("total_lamps", "sum_lamps"), LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    after = LONG.replace(target, replacement)
    assert after == LONG.replace("total_lamps", "sum_lamps")


def test_a_definition_that_is_to_go_and_is_shown_again_is_removed() -> None:
    old = LONG[LONG.index("def find_lamp") : LONG.index("def total_chairs")]
    change = read_change("store.py", old, LONG, shown_whole=False, removed={"find_lamp"})

    ((target, replacement),) = change.edits
    after = LONG.replace(target, replacement)
    assert "find_lamp" not in after
    assert after.count("\ndef ") == LONG.count("\ndef ") - 1
    compile(after, "store.py", "exec")


def test_a_head_without_a_body_is_no_definition() -> None:
    current = 'def greet(name):\n    return "Hello, " + name\n' + "".join(f"x{n} = {n}\n" for n in range(20))
    change = read_change("greeting.py", "def welcome(name):\n", current, shown_whole=False)
    assert change.edits == (("def greet(name):", "def welcome(name):"),)


PYTHON = """import os


@cached
def one():
    return 1


class Two:
    def three(self):
        return 3

    def four(self): ...
"""


def test_functions_and_classes_with_what_decorates_them() -> None:
    found = [(one.name, one.indent, one.start, one.end) for one in find_definitions(PYTHON.splitlines())]

    assert found == [("one", 0, 3, 6), ("Two", 0, 8, 13), ("three", 4, 9, 11), ("four", 4, 12, 13)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("export default async function run() {\n  go();\n}\n", ["run"]),
        ("func (s *Server) Serve() {\n\tgo()\n}\n", ["Serve"]),
        ("pub fn main() {\n    x();\n}\n", ["main"]),
        ("interface Shape {\n  area(): number\n}\ntype Id = string\n", ["Shape", "Id"]),
        ("def head():\n", []),
        ("x = 1\n", []),
        ("", []),
    ],
)
def test_definitions_of_many_languages(text: str, names: list[str]) -> None:
    assert [found.name for found in find_definitions(text.splitlines())] == names


def test_a_head_of_several_lines_belongs_to_its_definition() -> None:
    text = "function a(\n  x,\n) {\n  return x;\n}\nfunction b() {\n  return 1;\n}\n"

    assert [(one.name, one.start, one.end) for one in find_definitions(text.splitlines())] == [("a", 0, 5), ("b", 5, 8)]


def test_a_new_function_with_a_head_of_several_lines_keeps_its_end() -> None:
    old = "function a() {\n  return 1;\n}\n"

    [(_, after)] = place("function b(\n  x,\n) {\n  return x;\n}", old) or []
    assert after.endswith("function b(\n  x,\n) {\n  return x;\n}")


def place(new: str, old: str) -> list[tuple[str, str]] | None:
    edits = place_definitions(new.splitlines(), old.splitlines())
    return None if edits is None else list(edits)


OLD = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"


def test_a_definition_takes_the_place_of_its_namesake() -> None:
    assert place("def one():\n    return 10", OLD) == [("def one():\n    return 1", "def one():\n    return 10")]
    assert place("def one():\n    return 1", OLD) == []


def test_new_definitions_come_behind_the_last() -> None:
    assert place("def six():\n    return os.getpid()", OLD) == [
        ("def two():\n    return 2", "def two():\n    return 2\n\n\ndef six():\n    return os.getpid()")
    ]


def test_a_new_one_before_a_changed_one_stays_before_it() -> None:
    assert place("def new():\n    return 0\n\n\ndef two():\n    return 22", OLD) == [
        ("def two():\n    return 2", "def new():\n    return 0\n\n\ndef two():\n    return 22")
    ]


def test_new_imports_stand_before_those_there_are() -> None:
    assert place("import re\n\ndef one():\n    return re", OLD) == [
        ("def one():\n    return 1", "def one():\n    return re"),
        ("import os", "import re\nimport os"),
    ]


@pytest.mark.parametrize("new", ["", "x = 1", "x = 1\ndef one():\n    return 10"])
def test_a_block_that_holds_other_things_is_not_placed(new: str) -> None:
    assert place(new, OLD) is None


def test_a_method_written_without_its_class_is_indented_like_the_one_there() -> None:
    old = "class A:\n    def run(self):\n        return 1\n"

    assert place("def run(self):\n    return 2", old) == [
        ("    def run(self):\n        return 1", "    def run(self):\n        return 2")
    ]


def test_a_definition_that_is_to_go_goes_with_the_lines_behind_it() -> None:
    assert remove_definitions("def one():\n    return 1", OLD, {"one"}) == (("def one():\n    return 1\n\n", ""),)
    assert remove_definitions("def one():\n    return 1", OLD, {"two"}) == ()
    assert remove_definitions("nothing", OLD, {"one"}) == ()


def test_where_there_is_no_definition_yet_it_comes_at_the_end() -> None:
    assert place("def new():\n    return 0", "import os\nLIMIT = 1") == [
        ("LIMIT = 1", "LIMIT = 1\n\n\ndef new():\n    return 0")
    ]


TWO_CLASSES = (
    'class Empty:\n    """Nothing yet."""\n\n\n'
    "class A:\n    def run(self):\n        return 1\n\n    def stop(self):\n        return 2\n"
    + "".join(f"\n    def a_{n}(self):\n        return {n}\n" for n in range(6))
    + "\n\nclass B:\n    def run(self):\n        return 3\n"
    + "".join(f"\n    def b_{n}(self):\n        return {n}\n" for n in range(6))
)


def place_in_two(block: str) -> str:
    made = TWO_CLASSES
    for target, replacement in read_change("a.py", block, TWO_CLASSES, shown_whole=False).edits:
        assert made.count(target) == 1, target
        made = made.replace(target, replacement)
    return made


def test_a_method_stays_in_its_own_class() -> None:
    added = place_in_two("class A:\n    def more(self):\n        return 9\n")
    assert added == TWO_CLASSES.replace("\n\n\nclass B", "\n\n    def more(self):\n        return 9\n\n\nclass B")
    changed = place_in_two("class A:\n    def run(self):\n        return 9\n")
    assert changed == TWO_CLASSES.replace("return 1\n\n    def stop", "return 9\n\n    def stop")
    both = place_in_two("class A:\n    def a_5(self):\n        return 8\n\n    def more(self):\n        return 9\n")
    assert "def a_5(self):\n        return 8\n\n    def more(self):\n        return 9\n\n\nclass B" in both
    last = place_in_two("class B:\n    def more(self):\n        return 9\n")
    assert last.endswith("    def b_5(self):\n        return 5\n\n    def more(self):\n        return 9\n")


def test_a_class_without_methods_gets_them_at_its_end() -> None:
    made = place_in_two("class Empty:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n")

    body = "    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
    assert made == TWO_CLASSES.replace('yet."""\n', f'yet."""\n\n{body}')
