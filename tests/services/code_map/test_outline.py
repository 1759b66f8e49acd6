"""An outline within a budget."""

import pytest

from ollm.services.code_map.syntax_tree import fit_outline, outline_text, take_within
from ollm.services.token_counting import TokenCounter
from tests.services.code_map.full_outlines import NAMES, describe_file, get_file
from tests.services.code_map.samples import PYTHON

COUNT = TokenCounter().count_text
LONG = "".join(f"class C{number}:\n    def run_it(self): pass\n    def end_it(self): pass\n" for number in range(100))


def test_what_stands_inside_others_goes_first() -> None:
    lines = fit_outline(outline_text("a.py", LONG.encode()), 900, COUNT)

    assert lines[:2] == ["    1 class C0", "    4 class C1"]
    assert lines[-1] == "… 200 more definitions not shown"
    assert COUNT("\n".join(lines)) <= 920


def test_then_the_end_is_cut() -> None:
    lines = fit_outline(outline_text("a.py", LONG.encode()), 50, COUNT)

    assert lines[0] == "    1 class C0"
    assert lines[-1].endswith("more definitions not shown")
    assert COUNT("\n".join(lines)) <= 70


def test_without_need_nothing_is_cut() -> None:
    assert len(fit_outline(outline_text("a.py", PYTHON.encode()), 1000, COUNT)) == 5


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_found_in_a_file_of_each_kind(name: str) -> None:
    assert describe_file(name) == get_file(name).read_text(encoding="utf-8")


def test_as_many_lines_as_fit_and_how_many_are_left_out() -> None:
    found = outline_text("a.py", b"class A:\n    def b(self): pass\n    def c(self): pass\ndef d(): pass\n")
    lines = ["    1 class A", "    2   def b(self)", "    3   def c(self)", "    4 def d()"]

    def count(text: str) -> int:
        return len(text.split())

    assert fit_outline(found, 12, count) == lines
    assert fit_outline(found, 11, count) == [lines[0], "… 3 more definitions not shown"]
    assert fit_outline(found, 9, count) == [lines[0], "… 3 more definitions not shown"]
    assert fit_outline(found, 8, count) == ["… 4 more definitions not shown"]
    assert fit_outline(found[3:], 2, count) == ["… 1 more definition not shown"]
    assert take_within(["a b", "c", "d"], 3, count) == ["a b", "c"]
