"""Runs ripgrep over files that were found, and says in words where a pattern is wrong."""

from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.tools.search import ripgrep
from ollm.tools.search.ripgrep import (
    PrintedText,
    collect_output,
    find_ripgrep,
    group_by_directory,
    make_pattern_failure,
)


async def search(root: Path, files: list[str], *options: str) -> list[str]:
    printed = await collect_output(root, options, files, PrintedText)
    return sorted(printed.text.decode().splitlines())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"needle in {name}\n")
    (tmp_path / ".gitignore").write_text("*.txt\n")
    return tmp_path


async def test_the_named_files_are_searched_whatever_rules_hide_them(tree: Path) -> None:
    found = await search(tree, ["a.txt", ".hidden"], "--with-filename", "needle")

    assert found == [".hidden:needle in .hidden", "a.txt:needle in a.txt"]


async def test_a_directory_stands_for_what_is_right_in_it(tree: Path) -> None:
    assert await search(tree, ["./sub"], "needle") == ["./sub/b.txt:needle in sub/b.txt"]


async def test_without_files_nothing_is_found(tree: Path) -> None:
    assert await search(tree, [], "needle") == []


async def test_names_that_look_like_options_are_files(tmp_path: Path) -> None:
    (tmp_path / "-v").write_text("needle\nother\n")

    assert await search(tmp_path, ["-v"], "needle") == ["needle"]


async def test_more_names_than_a_command_line_takes_are_searched_in_batches(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tree / f"f{number:02}").write_text("needle\n")
    monkeypatch.setattr(ripgrep, "_ARGUMENT_BYTES", 50)

    found = await search(tree, [f"f{number:02}" for number in range(30)], "--with-filename", "needle")

    assert found == [f"f{number:02}:needle" for number in range(30)]


def test_batches_hold_all_names_in_their_order_and_keep_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "_ARGUMENT_BYTES", 60)

    batches = list(ripgrep._split_batches(["a" * 14, "b" * 14, "c" * 200, "d"]))

    assert batches == [[b"a" * 14, b"b" * 14], [b"c" * 200], [b"d"]]
    assert list(ripgrep._split_batches([])) == [[b"/dev/null"]]


async def test_a_wrong_pattern_is_explained(tree: Path) -> None:
    with pytest.raises(ToolFailure) as caught:
        await search(tree, ["a.txt"], "-e", "a(b")
    assert caught.value.kind == "InvalidPattern"
    assert caught.value.message == "Invalid regular expression: unclosed group.\n    a(b"
    assert caught.value.action == "Set literal to true to search for plain text."


async def test_without_ripgrep_it_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(tree / "missing"))

    with pytest.raises(ToolFailure) as caught:
        await search(tree, ["a.txt"], "x")
    assert (caught.value.kind, caught.value.message) == ("NotFound", "ripgrep (rg) is not installed; grep needs it.")


def test_the_ripgrep_that_came_with_us_is_used() -> None:
    assert Path(find_ripgrep()).name == "rg"


@pytest.mark.parametrize(
    ("files", "in_part", "words"),
    [
        ([], frozenset(), []),
        (["a", "b"], frozenset(), ["./"]),
        (["a", "s/b", "s/c"], frozenset(), ["./", "./s"]),
        (["a", "s/b", "s/c"], frozenset({"s"}), ["./", "s/b", "s/c"]),
        (["a", "s/b"], frozenset({"", "s", "other"}), ["a", "s/b"]),
    ],
)
def test_files_as_fewer_words(files: list[str], in_part: frozenset[str], words: list[str]) -> None:
    directories = list(dict.fromkeys(path.rpartition("/")[0] for path in files))
    assert group_by_directory(files, directories, in_part) == words


@pytest.mark.parametrize(
    ("complaint", "message"),
    [
        (
            "rg: regex parse error:\n    (?:a(b)\n       ^\nerror: unclosed group\n",
            "Invalid regular expression: unclosed group.\n    a(b\n    ^",
        ),
        ("rg: regex parse error:\n    x{\n     ^\nerror: odd\n", "Invalid regular expression: odd.\n    x{\n     ^"),
        (
            "rg: compiled regex exceeds size limit, error",
            "Invalid regular expression: compiled regex exceeds size limit, error.",
        ),
    ],
)
def test_ripgreps_words_without_the_brackets_it_adds(complaint: str, message: str) -> None:
    failure = make_pattern_failure(complaint)

    assert (failure.kind, failure.message) == ("InvalidPattern", message)
