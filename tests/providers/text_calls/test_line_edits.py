"""Lines of a block in the place of the lines of a file that they stand for."""

import pytest

from ollm.providers.text_calls.block_edits import read_change
from ollm.providers.text_calls.line_edits import (
    REMOVED,
    append_lines,
    compute_kept_share,
    has_ellipsis,
    make_edit_at,
    place_added_lines,
    place_block,
    place_elided,
    place_keyed_lines,
    place_section,
    place_similar,
    place_similar_line,
)

SETTINGS = "".join(
    f"{group}_PORT = {n}\n{group}_RETRIES = 3\n\n" for n, group in enumerate(("WEB", "MAIL", "CACHE", "AUTH"))
)


YAML = "".join(
    f"  {name}:\n    image: {name}:1\n    replicas: 2\n    restart: always\n"
    for name in ("web", "api", "cache", "cron")
)


def test_lines_that_set_a_name_take_the_place_of_those_that_set_it() -> None:
    change = read_change("settings.py", "MAIL_PORT = 2525\nAUTH_RETRIES = 9\n", SETTINGS, shown_whole=False)
    assert change.edits == (("MAIL_PORT = 1", "MAIL_PORT = 2525"), ("AUTH_RETRIES = 3", "AUTH_RETRIES = 9"))


def test_a_shown_part_with_a_change_takes_the_place_of_that_part() -> None:
    body = "  cache:\n    image: cache:1\n    replicas: 5\n    restart: always\n"
    change = read_change("compose.yaml", body, YAML * 1 + "".join(f"# {n}\n" for n in range(40)), shown_whole=False)

    ((target, replacement),) = change.edits
    assert "cache:1\n    replicas: 2" in target
    assert "cache:1\n    replicas: 5" in replacement


def test_stretches_between_comments_that_stand_for_the_rest_are_placed() -> None:
    old = "".join(f"step_{n}()\n" for n in range(40))
    body = "step_3()\nextra()\nstep_4()\n# ... rest of the code ...\nstep_20()\nmore()\nstep_21()\n"
    change = read_change("a.py", body, old, shown_whole=True)

    assert change.edits == (
        ("step_3()\nstep_4()", "step_3()\nextra()\nstep_4()"),
        ("step_20()\nstep_21()", "step_20()\nmore()\nstep_21()"),
    )


STYLE = "".join(
    f".box{n} {{\n  color: {'#ff6600' if n % 3 == 0 else '#222222'};\n  margin: {n}px;\n}}\n" for n in range(20)
)


def test_a_line_that_many_have_is_placed_by_the_value_the_request_names() -> None:
    request = "Replace #ff6600 by #0066ff everywhere in style.css"
    change = read_change("style.css", "color: #0066ff;\n", STYLE, shown_whole=False, request=request)

    assert change.edits == (("color: #ff6600;", "color: #0066ff;"),)
    assert read_change("style.css", "color: #0066ff;\n", STYLE, shown_whole=False, request="Change it").mistake


def test_a_section_of_a_page_is_added_or_takes_the_place_of_its_namesake() -> None:
    page = "# Parcel\n\n" + "".join(f"## Part {n}\n\nText {n}.\n\n" for n in range(9))

    ((target, replacement),) = read_change("README.md", "## Licence\n\nMIT\n", page, shown_whole=True).edits
    assert page.replace(target, replacement).rstrip().endswith("Text 8.\n\n## Licence\n\nMIT")

    ((target, replacement),) = read_change("README.md", "## Part 4\n\nNew.\n", page, shown_whole=True).edits
    after = page.replace(target, replacement)
    assert "## Part 4\n\nNew.\n\n## Part 5" in after
    assert "Text 4." not in after


def test_a_target_stands_only_once_with_lines_from_above_where_needed() -> None:
    old = ["a", "x", "b", "x"]

    assert make_edit_at(old, 1, 2, "y") == ("a\nx", "a\ny")
    assert make_edit_at(old, 3, 4, "y") == ("b\nx", "b\ny")
    assert make_edit_at(old, 2, 3, "y") == ("b", "y")
    assert make_edit_at(old, 2, 3, REMOVED) == ("b", "")
    assert make_edit_at(old, 3, 4, REMOVED) == ("b\nx", "b")
    assert append_lines(["a", "b"], "c") == ("b", "b\nc")


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [
        (["a", "b"], ["a", "b"], 1),
        (["a", "b"], ["a"], 0.5),
        (["a", " ", "b"], ["  b"], 0.5),
        (["a"], ["x"], 0),
        ([], ["x"], 0),
    ],
)
def test_how_much_of_a_file_a_block_repeats(old: list[str], new: list[str], share: float) -> None:
    assert compute_kept_share(old, new) == share


@pytest.mark.parametrize(
    ("body", "current", "elided"),
    [
        ("a\n...\nb", "", True),
        ("# ... rest of the code", "", True),
        ("// existing code", "", True),
        ("# unchanged", "# unchanged", False),
        ("a = 1", "", False),
        ("<!-- same as before -->", "", True),
    ],
)
def test_whether_a_comment_stands_for_what_was_left_out(body: str, current: str, elided: bool) -> None:
    assert has_ellipsis(body, current) is elided


PAGE = ["# Top", "", "## One", "text", "", "### Inner", "more", "", "## Two", "end"]


def test_a_section_takes_the_place_of_the_one_under_its_heading() -> None:
    assert place_section(["## One", "new"], PAGE) == (("## One\ntext\n\n### Inner\nmore", "## One\nnew"),)
    assert place_section(["### Inner", "new"], PAGE) == (("### Inner\nmore", "### Inner\nnew"),)
    assert place_section(["## Three", "new"], PAGE) == (("end", "end\n\n## Three\nnew"),)


@pytest.mark.parametrize("new", [[], ["text"], ["# Top", "new"], ["## One", "## Two"]])
def test_what_is_no_section_is_not_placed(new: list[str]) -> None:
    assert place_section(new, PAGE) is None


def test_a_few_lines_that_set_names_are_placed_by_them() -> None:
    old = ["DEBUG = False", "    limit: 5", "NAME = 'x'"]

    assert place_keyed_lines(["limit: 6", "NAME = 'y'"], old, "") == (
        ("    limit: 5", "    limit: 6"),
        ("NAME = 'x'", "NAME = 'y'"),
    )
    assert place_keyed_lines(["DEBUG = False"], old, "") is None
    assert place_keyed_lines(["OTHER = 1"], old, "") is None
    assert place_keyed_lines([], old, "") is None
    assert place_keyed_lines([f"N{number} = 1" for number in range(9)], old, "") is None


def test_of_lines_with_one_name_those_the_request_names_are_meant() -> None:
    old = ["color: red", "color: blue"]

    assert place_keyed_lines(["color: green"], old, "make the blue ones green") == (("color: blue", "color: green"),)
    assert place_keyed_lines(["color: green"], old, "make it green") is None
    twice = ["color: red", "x", "color: red"]
    assert place_keyed_lines(["color: green"], twice, "the red ones") == (("color: red", "color: green"),)


@pytest.mark.parametrize(
    ("new", "edit"),
    [
        (["value = compute(2)"], ("    value = compute(1)", "    value = compute(2)")),
        (["zzz"], None),
        (["a", "b"], None),
        ([], None),
    ],
)
def test_one_line_takes_the_place_of_the_one_it_is_most_like(new: list[str], edit: tuple[str, str] | None) -> None:
    found = place_similar_line(new, ["def f():", "    value = compute(1)", "    return value"], ())

    assert found == (None if edit is None else (edit,))


def test_of_two_lines_as_like_none_is_chosen() -> None:
    old = ["value = 1", "value = 2"]

    assert place_similar_line(["value = 3"], old, ()) is None
    assert place_similar_line(["value = 3"], old, {1}) == (("value = 2", "value = 3"),)
    assert place_similar_line(["value = 3"], old, {0, 1}) is None
    assert place_similar_line(["a = x + 99"], ["a = x + 9", "a = x + 33"], ()) is None


def test_a_shown_part_takes_the_place_of_what_it_repeats() -> None:
    old = ["a", "b", "c", "d", "e", "f"]

    assert place_similar(["b", "c", "X", "e"], old) == (("b\nc\nd\ne", "b\nc\nX\ne"),)
    assert place_similar(["q", "r", "s", "t"], old) is None
    assert place_similar(["b", "c"], old) is None


def test_stretches_between_ellipses_are_placed_by_their_ends() -> None:
    old = ["start", "one", "end", "begin", "two", "stop"]

    assert place_elided(["start", "ONE", "end", "# ...", "begin", "TWO", "stop"], old) == (
        ("start\none\nend", "start\nONE\nend"),
        ("begin\ntwo\nstop", "begin\nTWO\nstop"),
    )
    assert place_elided(["start", "ONE", "end"], old) is None
    assert place_elided(["# ..."], old) is None
    assert place_elided(["unknown", "x", "end", "# ..."], old) is None


@pytest.mark.parametrize(
    ("new", "edit"),
    [
        (["import re"], ("import os", "import os\nimport re")),
        (["B = 2"], ("A = 1", "A = 1\nB = 2")),
        (["some words"], ("x()", "x()\nsome words")),
        (["A = 1"], None),
        (["    indented"], None),
        ([], None),
    ],
)
def test_lines_to_be_added_come_behind_their_like(new: list[str], edit: tuple[str, str] | None) -> None:
    assert place_added_lines(new, ["import os", "A = 1", "x()"]) == ((edit,) if edit else None)


REGIONS = [
    "{",
    '  "west": {',
    '    "port": 1,',
    '    "disks": [',
    '      "ssd"',
    "    ]",
    "  },",
    '  "east": {',
    '    "port": 2,',
    '    "disks": [',
    '      "ssd"',
    "    ]",
    "  }",
    "}",
]


@pytest.mark.parametrize("indent", ["", "  ", "      "])
def test_an_entry_takes_the_place_of_the_one_that_begins_as_it_does(indent: str) -> None:
    new = [indent + line for line in ('"east": {', '  "port": 9,', '  "disks": []', "},")]
    edits = place_block(new, REGIONS)
    assert edits == (("\n".join(REGIONS[7:13]), '  "east": {\n    "port": 9,\n    "disks": []\n  }'),)
    first = place_block([line.replace("east", "west").rstrip(",") for line in new], REGIONS)
    assert first is not None
    assert first[0][1].endswith("\n  },")
    assert place_block([indent + '"north": {', indent + "}"], REGIONS) is None
    assert place_block([*new, indent + '"more": 1'], REGIONS) is None
    assert place_block(['    "disks": [', "    ]"], REGIONS) is None
    assert place_block([], REGIONS) is None


def test_a_part_that_begins_with_a_line_of_the_file_is_placed_only_where_that_line_is() -> None:
    east, west = (
        [f'"{name}": {{', f'  "host": "{name}.x",', '  "port": 1,', '  "timeout": 30,', '  "retries": 3', "},"]
        for name in ("east", "west")
    )
    changed = [west[0], '  "host": "other.x",', '  "port": 2,', *west[3:]]

    assert place_similar(changed, [*east, *west]) is None, "it repeats most of the first"
    assert place_similar(["x", *changed[1:]], [*east, *west]) is not None
