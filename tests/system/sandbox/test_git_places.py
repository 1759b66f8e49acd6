"""Where git keeps a workspace's repository, its own or that of a linked worktree."""

import subprocess
from pathlib import Path

import pytest

from ollm.system.sandbox.git_places import find_git_directories


def make_worktree(root: Path) -> tuple[Path, Path, Path]:
    """A repository's directory, what it keeps of a worktree, and the worktree, as git lays them out."""
    common, private, workspace = root / "repo" / ".git", root / "repo" / ".git" / "worktrees" / "x", root / "x"
    private.mkdir(parents=True)
    workspace.mkdir()
    (workspace / ".git").write_text(f"gitdir: {private}\n")
    (private / "gitdir").write_text(f"{workspace / '.git'}\n")
    (private / "commondir").write_text("../..\n")
    return common, private, workspace


def test_a_repository_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    assert find_git_directories(str(tmp_path)) == [str(tmp_path / ".git")]


def test_no_repository_and_a_link_are_none(tmp_path: Path) -> None:
    assert find_git_directories(str(tmp_path)) == []
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".git").symlink_to("elsewhere")
    assert find_git_directories(str(tmp_path)) == []


def test_a_linked_worktree_has_the_repository_it_belongs_to(tmp_path: Path) -> None:
    common, _, workspace = make_worktree(tmp_path)

    assert find_git_directories(str(workspace)) == [str(common)]


def test_git_lays_a_worktree_out_like_this(tmp_path: Path) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (
        ["git", "init", "-q", "repo"],
        ["git", "-C", "repo", *identity, "commit", "-q", "--allow-empty", "-m", "x"],
        ["git", "-C", "repo", "worktree", "add", "-q", "../x"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    assert find_git_directories(str(tmp_path / "x")) == [str(tmp_path / "repo" / ".git")]


@pytest.mark.parametrize(
    "harm", ["not named back", "another is named", "no gitdir", "common elsewhere", "nonsense", "empty"]
)
def test_a_file_alone_proves_nothing(tmp_path: Path, harm: str) -> None:
    _, private, workspace = make_worktree(tmp_path)
    match harm:
        case "not named back":
            (private / "gitdir").unlink()
        case "another is named":
            (private / "gitdir").write_text("/somewhere/.git\n")
        case "no gitdir":
            (workspace / ".git").write_text("gitdir: /etc\n")
        case "common elsewhere":
            (private / "commondir").write_text("/etc\n")
        case "nonsense":
            (workspace / ".git").write_bytes(b"\xff\xfe")
        case "empty":
            (workspace / ".git").write_text("")

    assert find_git_directories(str(workspace)) == []


def test_without_a_commondir_the_place_itself_is_it(tmp_path: Path) -> None:
    _, private, workspace = make_worktree(tmp_path)
    (private / "commondir").unlink()

    assert find_git_directories(str(workspace)) == [str(private)]
