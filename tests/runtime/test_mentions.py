"""Files that a message names with `@`."""

import os
from pathlib import Path

from ollm.runtime.mentions import describe_missing, find_mentions, is_there, looks_like_path, suggest_neighbour


def test_names_are_found_at_the_beginning_of_words_once_each(tmp_path: Path) -> None:
    (tmp_path / "odd.").touch()
    text = 'see @a.py, (@b/c) and @"two words.txt" not me@home nor @a.py; @odd. @end.'

    assert find_mentions(text, tmp_path) == ["a.py", "b/c", "two words.txt", "odd.", "end"]
    assert find_mentions("no at sign", tmp_path) == []


def test_a_name_may_have_a_quote_or_an_at_sign_in_it_where_there_is_such_a_file(tmp_path: Path) -> None:
    for name in ('q"uote.py', "a@b.txt"):
        (tmp_path / name).touch()

    assert find_mentions('@q"uote.py, @a@b.txt @c"d @e@f (@g,(@h', tmp_path) == [
        'q"uote.py', "a@b.txt", "c", "e", "g,(", "h"
    ]  # fmt: skip


def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    assert find_mentions(f"@{'n' * 5000}", tmp_path) == ["n" * 5000]
    assert not is_there(tmp_path / ("n" * 5000))
    assert not is_there(tmp_path / "a\0b")
    assert [name for name in ("src/a", "a.py", "alice", "...") if looks_like_path(name)] == ["src/a", "a.py"]


def test_a_mistyped_name_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    for name in ("Makefile", "src/cart.py", ".env", "odd\u202ename"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / os.fsdecode(b"cart\xff")).touch()

    def say(name: str) -> str:
        return describe_missing(name, tmp_path)

    assert say("Makefle") == "no such file; did you mean @Makefile?"
    assert say("scr") == "no such file; did you mean @src?"
    assert say("src/crat.py") == "no such file; did you mean @src/cart.py?"
    assert [say(name) for name in ("alice", "env", "...", "", "n" * 5000, "a\0b", "oddname", "~bob")] == [""] * 8
    assert [say(name) for name in ("gone.py", "src/", "nowhere/cart.py", "../x/cart.py")] == ["no such file"] * 4


def test_outside_the_workspace_nothing_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "cart.py").touch()

    assert suggest_neighbour("../crat.py", tmp_path / "inside") == ""
    assert suggest_neighbour("crat.py", tmp_path) == "cart.py"
    assert suggest_neighbour("inside/", tmp_path) == ""
