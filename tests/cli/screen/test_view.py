"""The parts of the screen that are painted again and again."""

from pathlib import Path

from ollm.cli.screen.view import read_git_branch


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_git_branch(tmp_path) == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "HEAD").write_text("ref: refs/heads/fix/one\n")
    (tmp_path / ".git").write_text("gitdir: real\n")
    assert read_git_branch(tmp_path) == "fix/one"
    (tmp_path / "real" / "HEAD").write_text("0123456789abcdef\n")
    assert read_git_branch(tmp_path) == "01234567"
