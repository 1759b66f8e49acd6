"""What steps did to the files, in words."""

import pytest

from ollm.runtime.calls.change_facts import (
    MAX_CHANGE_CHARS,
    count_changed_lines,
    describe_changes,
    list_changed_lines,
    shorten_command,
)


def test_changes_are_told_by_kind_and_bounded() -> None:
    assert describe_changes({}, {}, set(), set()) == ""
    assert describe_changes({"a": "x"}, {"a": "x"}, {"a"}, {"a"}) == ""
    assert describe_changes({}, {"a": "x\ny\n"}, set(), {"a"}) == "Created a (2 lines)."
    assert describe_changes({}, {"a": "x"}, {"a"}, {"a"}) == ""
    assert describe_changes({"b": "x"}, {}, {"b"}, set()) == "Deleted b."
    many = {f"f{number}": "x" for number in range(500)}
    assert len(describe_changes({}, many, set(), set(many))) == MAX_CHANGE_CHARS


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [("", "", (0, 0)), ("", "a\nb\n", (2, 0)), ("a\nb\n", "a\n", (0, 1)), ("a\n", "b\n", (1, 1)), ("a", "a\n", (0, 0))],
)
def test_changed_lines_are_counted(before: str, after: str, counts: tuple[int, int]) -> None:
    assert count_changed_lines(before, after) == counts


def test_long_lists_of_changes_and_commands_are_cut() -> None:
    lines = "".join(f"{number}\n" for number in range(15))
    assert list_changed_lines("", lines).splitlines()[-1] == "…"
    assert len(list_changed_lines("", lines).splitlines()) == 15
    assert "…" not in list_changed_lines("", "".join(f"{number}\n" for number in range(14)))
    assert shorten_command("a  b\nc") == "a b c"
    assert shorten_command("x" * 60) == "x" * 60
    assert shorten_command("x" * 61) == "x" * 59 + "…"
