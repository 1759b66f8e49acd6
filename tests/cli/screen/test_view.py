"""The parts of the screen that are painted again and again."""

from pathlib import Path

import pytest

from ollm.cli.screen.transcript import ContextFill
from ollm.cli.screen.view import merge_style_runs, read_git_branch, style_status_line


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_git_branch(tmp_path) == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "HEAD").write_text("ref: refs/heads/fix/one\n")
    (tmp_path / ".git").write_text("gitdir: real\n")
    assert read_git_branch(tmp_path) == "fix/one"
    (tmp_path / "real" / "HEAD").write_text("0123456789abcdef\n")
    assert read_git_branch(tmp_path) == "01234567"


def test_runs_of_a_style_become_one_fragment() -> None:
    assert merge_style_runs("") == []
    assert merge_style_runs("plain") == [("", "plain")]
    assert merge_style_runs("\x1b[31mred\x1b[0m and \x1b[1mbold") == [
        ("ansired", "red"),
        ("", " and "),
        ("bold", "bold"),
    ]


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main\n", "main"),
        ("ref: refs/heads/" + "x" * 60, "x" * 40),
        ("0123456789abcdef", "01234567"),
        ("ref: refs/heads/a\x1bb", "a\\x1bb"),
    ],
)
def test_the_branch_is_what_the_head_says(tmp_path: Path, head: str, branch: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)

    assert read_git_branch(tmp_path) == branch


def test_a_head_that_cannot_be_read_is_no_branch(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert read_git_branch(tmp_path) == ""
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff\xfe")
    assert read_git_branch(tmp_path) == ""


def test_the_bar_and_a_level_that_asks_less_stand_out_in_the_status_line() -> None:
    line = " ██░░┊ 30% · code·yolo · yolo-7b "
    half = style_status_line(line, ContextFill(used=30, limit=100, mark=80), "yolo")
    full = style_status_line(line, ContextFill(used=80, limit=100, mark=80), "ask")

    assert "".join(part[1] for part in half) == "".join(part[1] for part in full) == line
    assert [part[:2] for part in half if part[0] != "class:status"] == [
        ("class:bar", "██"),
        ("class:bold-approval", "yolo"),
    ]
    assert [part[:2] for part in full if part[0] != "class:status"] == [("class:bar-full", "██")]
