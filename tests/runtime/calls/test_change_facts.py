"""What steps did to the files, in words."""

import pytest

from ollm.domain.messages import ToolCall
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.providers.text_calls.block_edits import IDLE_SED
from ollm.runtime.calls.change_facts import (
    MAX_CHANGE_CHARS,
    apply_edits,
    count_changed_lines,
    count_changes,
    count_output,
    describe_changes,
    describe_deed,
    find_idle_sed,
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
    [
        ("-- a\n", "++ b\n@@\n", (2, 1)),
        ("", "", (0, 0)),
        ("", "a\nb\n", (2, 0)),
        ("a\nb\n", "a\n", (0, 1)),
        ("a\n", "b\n", (1, 1)),
        ("a", "a\n", (0, 0)),
    ],
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


def test_each_kind_of_change_in_its_words() -> None:
    before = {"a.py": "x = 1\ny = 2\n", "b.py": "x\n"}
    after = {"a.py": "x = (\ny = 2\n", "b.py": "x\n", "c.txt": "one", "d.txt": ""}

    assert describe_changes(before, after, {"a.py", "b.py", "e", "g"}, {*after}) == (
        "Deleted e.\nDeleted g.\nChanged lines of a.py:\n-x = 1\n+x = (\n"
        "a.py no longer parses: line 1: '(' was never closed\nCreated c.txt (1 line).\nCreated d.txt (0 lines)."
    )


@pytest.mark.parametrize(
    ("before", "after", "known", "told"),
    [
        ("a\n", None, True, "f (deleted)"),
        ("a\n", None, False, ""),
        (None, "a\nb\n", False, "f (+2 -0)"),
        ("a\n", "a\n", True, ""),
        ("a\nb\n", "c\n", True, "f (+1 -2)"),
        (None, "", False, "f (+0 -0)"),
    ],
)
def test_a_deed_is_a_file_with_its_lines(before: str | None, after: str | None, known: bool, told: str) -> None:
    assert describe_deed("f", before, after, known=known) == told


def make_record(text: str, code: int | None) -> ToolCallRecord:
    return ToolCallRecord("c", "shell", {}, "", result=RecordedResult(llm_content=text, exit_code=code))


def test_lines_that_came_and_lines_that_changed_are_counted() -> None:
    assert count_output([]) == ""
    assert count_output([make_record("a\nb\n", 1)]) == ""
    assert count_output([make_record("a\n", 0)]) == ""
    assert count_output([make_record("a\nb\nc\n", 1), make_record("a\nb\n", 0)]) == "That is 2 lines."
    assert count_changes({"a": "1\n2\n", "b": "1\n"}, {"a": "3\n4\n", "c": "5\n"}) == "That is 2 changed lines."
    assert count_changes({"a": "1\n"}, {"a": "2\n"}) == ""


def test_an_edit_by_sed_that_did_nothing_is_told() -> None:
    def tell(command: str | None, code: int = 0) -> bool:
        call = ToolCall(id="c", name="shell", arguments={} if command is None else {"command": command})
        return bool(find_idle_sed([call], [make_record("", code)]))

    assert tell("sed -i 's/a/b/' f")
    assert tell(" sed -E -i.bak 's/a/b/' f")
    assert not tell("sed -i 's/a/b/' f", 1)
    assert not tell("sed -i 's/a/b/' f; ls")
    assert not tell("sed 's/a/b/' f")
    assert not tell(None)
    assert not find_idle_sed([], [])
    assert IDLE_SED in find_idle_sed([ToolCall("c", "shell", {"command": "sed -i x f"})], [make_record("", 0)])


def test_edits_are_made_once_or_everywhere() -> None:
    assert apply_edits("a a a", [{"target": "a", "replacement": "b"}]) == "b a a"
    edits = [{"target": "a", "replacement": "b", "replaceAll": True}, {"target": "b", "replacement": "c"}]
    assert apply_edits("a a a", edits) == "c b b"


def test_facts_end_where_they_are_long_and_lines_are_counted_over_all_files() -> None:
    before = {f"f{number:02}.txt": "x" * 60 + "\n" for number in range(20)}
    after = {name: text.replace("x", "y") for name, text in before.items()}

    told = describe_changes(before, after, set(before), set(after))

    assert len(told) == 1200
    assert count_changes({"a": "1\n2\n", "b": "1\n", "gone": "1\n"}, {"a": "3\n", "b": "2\n3\n"}) == (
        "That is 3 changed lines."
    )
