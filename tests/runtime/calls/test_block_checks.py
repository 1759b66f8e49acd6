"""Blocks that are asked for again before anything is changed."""

import pytest

from ollm.runtime.calls.block_checks import BlockChecks, find_loss, merge_doubled
from ollm.runtime.calls.kept_parts import keep_other_parts

CODE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"


def test_a_file_that_would_not_parse_is_refused_a_few_times_and_only_if_it_parsed() -> None:
    checks = BlockChecks()

    told = [checks.find_damage("a.py", "x = 1\n", "x = (\n", "Fix it.") for _ in range(4)]

    assert ["no longer parses" in said for said in told] == [True, True, False, False]
    assert "does not parse" in checks.find_damage("new.py", None, "echo 'a'; done\n", "Write new.py.")
    assert checks.find_damage("b.py", "x = (\n", "x = ((\n", "Fix it.") == ""
    assert checks.find_damage("c.txt", None, "x = (\n", "Write it.") == ""


@pytest.mark.parametrize(
    ("path", "before", "after", "request_", "lost"),
    [
        ("a.py", CODE, "def a():\n    return 3\n", "Let a return 3.", "b"),
        ("a.py", CODE, "def a():\n    return 3\n", "Let a return 3 and do away with b.", ""),
        ("a.py", CODE, "def a():\n    return 3\n", "Simplify a.py.", ""),
        ("a.py", CODE, CODE.replace("return 2", '"""Text."""'), "Document a.py.", "b"),
        ("a.py", "x = (", "y = (", "Fix it.", ""),
        ("a.js", "function a() {\n  return 1\n}\n", "let a = 1\n", "Let it be 1.", "a"),
        ("a.js", "function a() {\n  return 1\n}\n", "function a() {\n  return 2\n}\n", "Let it be 2.", ""),
        ("n.md", "a\nb\nc\n", "a\n", "Set a.", "2 lines"),
        ("n.md", "a\nb\nc\n", "a\nb\n", "Set a.", ""),
        ("n.md", "a\nb\nc\n", "a\n", "Remove b and c.", ""),
        ("n.md", "", "", "Set a.", ""),
        ("t.csv", "n,p\nsaw,1\n", '[{"n": 1}]\n', "Sort it.", ""),
        ("n.md", "- [ ] buy paint\n- mow\n", "- mow\n", "Tick off 'buy paint'.", "'buy paint'"),
        ("n.md", "- [ ] buy paint\n- mow\n", "- mow\n", "Change 'buy paint' to 'mow'.", ""),
        ("n.md", "a\nb\n", "a\nb\nc\n", "Put 'zzz' there.", ""),
        ("a.py", "def b():\n    x = 2\n    return x\n", "def b():\n    return 2\n", "Let b be quick.", ""),
        ("a.py", "def b():\n    return 2\n", 'def b():\n    "Two."\n    return 2\n', "Document b.", ""),
        ("n.md", "a\n\n\nb\n", "a\nb\n", "Set a.", ""),
    ],
)
def test_what_a_file_loses_is_found_where_nobody_spoke_of_it(
    path: str, before: str, after: str, request_: str, lost: str
) -> None:
    told = find_loss(path, before, after, request_)

    assert told.endswith(lost)
    assert bool(told) is bool(lost)


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ("Let a return 3. Change nothing else.", True),
        ("Only change a: it should return 3.", True),
        ("Let a return 3.", False),
        ("Let a and b return 3. Change nothing else.", False),
        ("Let both return 3. Change nothing else.", False),
    ],
)
def test_other_parts_stay_where_one_alone_is_to_change(request_: str, kept: bool) -> None:
    after = "def a():\n    return 3\n\n\ndef b():\n    return 3\n"

    assert keep_other_parts(CODE, after, request_) == (CODE.replace("return 1", "return 3") if kept else after)
    assert keep_other_parts("", after, request_) == after


@pytest.mark.parametrize(
    ("path", "before", "after", "request_", "merged"),
    [
        ("t.csv", "n,p\nsaw,1\nnut,3\n", "n,p\nsaw,1\nnut,3\nsaw,2\n", "A saw is 2 now.", "n,p\nsaw,2\nnut,3\n"),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,1\nsaw,2\n", "Add another saw for 2.", None),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,1\nsaw,2\n", "Put the row saw,2 at the end of t.csv.", None),
        ("t.csv", "a,1\nb,1\nc,1\n", "a,1\na,2\nb,1\nb,2\nc,1\nc,2\n", "All are 2 now.", "a,2\nb,2\nc,2\n"),
        ("t.csv", "n,p\nsaw,1\nsaw,3\n", "n,p\nsaw,2\nsaw,3\n", "The first saw is 2 now.", None),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,2\nsaw,3\n", "Saws are 2 and 3.", None),
        ("a.ini", "[x]\nk=1\n[y]\nk=2\n", "[x]\nk=1\nk=3\n[y]\nk=2\n", "k of x is 3.", "[x]\nk=3\n[y]\nk=2\n"),
        ("a.ini", "[x]\nk=1\n", "[x]\nk=1\n[y]\nk=2\n", "k of y is 2.", None),
        ("a.py", "k = 1\n", "k = 1\nk = 2\n", "k is 2.", None),
        ("t.csv", "", "saw,1\nsaw,2\n", "Write t.csv.", None),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,1\nsaw,1\n", "Look at it.", None),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,2\nsaw,1\n", "A saw is 2 now.", None),
        ("t.csv", "n,p\nsaw,1\n", "n,p\nsaw,1\nsaw,2\nsaw,3\n", "Saws are 2 and 3.", None),
        ("t.csv", "n,p\n\n", "n,p\n\n,2\n", "Look at it.", None),
    ],
)
def test_a_row_that_came_a_second_time_takes_the_place_of_the_first(
    path: str, before: str, after: str, request_: str, merged: str | None
) -> None:
    assert merge_doubled(path, before, after, request_) == (merged or after)


@pytest.mark.parametrize(
    ("before", "after", "request_", "lost"),
    [
        ("p.add_argument('--text', type=str)", "p.add_argument('--twice')", "Add --twice.", "--text"),
        ("p.add_argument('-t', '--text')", "p.add_argument('--twice')", "Add --twice.", "--text"),
        ('@click.option("--text")', '@click.option("--twice")', "Add --twice.", "--text"),
        ("p.add_argument('--text')", "p.add_argument('--text')\np.add_argument('--twice')", "Add --twice.", ""),
        ("p.add_argument('--text')", "p.add_argument('--words')", "Call the option text words.", ""),
        ("p.add_argument('--text')", "p.add_argument('--twice')", "Remove the options but --twice.", ""),
        ("p.add_argument('--text')", "@dataclass\nclass Options: pass", "Use a dataclass.", ""),  # another way
        ("p.add_argument('path')", "p.add_argument('--twice')", "Add --twice.", ""),
    ],
)
def test_an_option_that_nobody_spoke_of_is_not_lost(before: str, after: str, request_: str, lost: str) -> None:
    told = f"tool.py loses the option {lost}: {before}" if lost else ""

    assert find_loss("tool.py", f"{before}\n", f"{after}\n", request_) == told
