"""Parts of files that a request names."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.named_parts import (
    aim_at_part,
    find_heading_change,
    find_left_sections,
    find_named_definition,
    find_removed_names,
    find_removed_section,
    find_unchanged_definitions,
)

SHOP = "CURRENCY = 'EUR'\n\n\ndef show(item):\n    return item\n\n\ndef price(item):\n    return 1\n"
PAGE = "# Page\n\n## Start\n\na\n\n## Print\n\nb\n\n### More\n\nc\n\n## Help\n\nd\n"
ASKED = "Use USD instead of EUR as CURRENCY in shop.py and let show end with the currency."


def test_a_function_that_was_to_change_and_is_as_it_was_is_the_step_that_is_left() -> None:
    half = {"shop.py": SHOP.replace("EUR", "USD")}
    whole = {"shop.py": half["shop.py"].replace("return item", "return item + CURRENCY")}

    assert find_unchanged_definitions(ASKED, {"shop.py": SHOP}, half) == ["Now change show in shop.py."]
    assert find_unchanged_definitions(ASKED, {"shop.py": SHOP}, whole) == []
    assert find_unchanged_definitions(ASKED, {"shop.py": SHOP}, {"shop.py": SHOP}) == []
    assert find_unchanged_definitions("price in shop.py should be 2", {"shop.py": SHOP}, half) == [
        "Now change price in shop.py."
    ]
    assert find_unchanged_definitions("Rename show to tell, then run shop.py", {"shop.py": SHOP}, half) == []


def test_a_definition_is_found_when_it_stands_alone() -> None:
    found = find_named_definition("shop.py", "show", {"shop.py": SHOP})

    assert found is not None
    assert found.text == "def show(item):\n    return item"
    assert find_named_definition("shop.py", "show", {"shop.py": SHOP + SHOP}) is None


@pytest.mark.parametrize(
    ("asked", "text", "left"),
    [
        ("Remove the section Print from page.md.", PAGE, PAGE.replace("## Print\n\nb\n\n### More\n\nc\n\n", "")),
        ("Please drop the Help section from page.md", PAGE, PAGE.replace("## Help\n\nd\n", "")),
        ("Delete the section [log] from page.md", "[a]\nx=1\n[log]\ny=2\n[b]\nz=3\n", "[a]\nx=1\n[b]\nz=3\n"),
    ],
)
def test_a_section_goes_up_to_the_next_of_its_rank(tmp_path: Path, asked: str, text: str, left: str) -> None:
    (tmp_path / "page.md").write_text(text)

    assert find_left_sections(asked, {"page.md": text})
    subprocess.run(find_removed_section(asked, text), shell=True, cwd=tmp_path, check=True)

    assert (tmp_path / "page.md").read_text() == left
    assert find_left_sections(asked, {"page.md": left}) == []


def test_a_section_that_is_not_there_or_not_meant_is_no_command() -> None:
    assert find_removed_section("Remove the section Nothing from page.md.", PAGE) == ""
    assert find_removed_section("Add a section Print to page.md.", PAGE) == ""


def test_a_failure_points_at_one_function_of_a_long_file() -> None:
    body = "".join(f"def part_{number}(x):\n    return x\n\n\n" for number in range(20))
    failure = (
        'Traceback (most recent call last):\n  File "/w/test_a.py", line 3, in <module>\n'
        "    assert part_7(part_3(1)) == 2\n           ^^^^\nAssertionError"
    )

    assert aim_at_part("Now change a.py.", {"a.py": body}, failure) == "Now change part_7 in a.py."
    inside = failure + '\n  File "/w/a.py", line 9, in part_4\n    return y\n'
    assert aim_at_part("python t.py still fails. Now mend a.py.", {"a.py": body}, inside) == (
        "python t.py still fails. Now change part_4 in a.py."
    )
    assert aim_at_part("Now change a.py.", {"a.py": "def part_7(x):\n    return x\n"}, failure) == "Now change a.py."
    assert aim_at_part("Now change a.py.", {"a.py": body}, "") == "Now change a.py."
    assert aim_at_part("Now run a.py.", {"a.py": body}, failure) == "Now run a.py."


def test_names_that_are_to_go_are_found() -> None:
    assert "old" in find_removed_names("Remove the function old from a.py.")
    assert "describe" in find_removed_names("Move the function describe from a.py to b.py.")
    assert find_removed_names("Add a function new to a.py.") == set()


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("In C.md the heading 'New' should become '2.1', nothing else.", "sed -i 's/^## New *$/## 2.1/' C.md"),
        ('Change the heading "New" to "A / B" in C.md', "sed -i 's/^## New *$/## A \\/ B/' C.md"),
        ("In C.md the word 'New' should become '2.1'.", ""),
        ("the heading 'Old' should become '2.1'", ""),  # no such heading
        ("the heading 'Both' should become '2.1'", ""),  # in two files
        ("What does the heading 'New' in C.md say?", ""),
    ],
)
def test_a_heading_gets_another_text_and_nothing_else_does(request_: str, command: str) -> None:
    shown = "\n\nFiles here: C.md, D.md\n\nC.md:\n```\nNew work.\n\n## New\n\n## Both\n```\n\nD.md:\n```\n## Both\n```"

    assert find_heading_change(request_, shown) == command
