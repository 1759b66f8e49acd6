"""Which names a box holds back."""

from pathlib import Path

import pytest

from ollm.system.sandbox.names import (
    find_account_home,
    find_steering_name,
    is_moved_as_a_whole,
    list_covered_places,
    list_kept_places,
    list_secret_places,
)


@pytest.mark.parametrize(
    ("path", "steers"),
    [
        ("a/.vscode/x", True),
        ("a/b/AGENTS.md", True),
        (".github/workflows/x.yml", True),
        (".github/CODEOWNERS", False),
        (".git/config", True),
        (".git/refs/heads/config", False),
        (".git/modules/a/hooks/x", True),
        ("src/config", False),
        ("docs/agents.md.txt", False),
        ("app/.npmrc", True),
        ("app/.Opencode/x", True),
        (".githooks/pre-push", True),
        ("tools/.nvim.lua", True),
        ("docs/rules", False),
    ],
)
def test_names_that_steer(path: str, steers: bool) -> None:
    assert (find_steering_name(path) is not None) == steers


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/w/.git", ".git"),
        ("/w/.git/hooks/pre-commit", ".git/hooks"),
        ("/w/.git/info/attributes", ".git/info/attributes"),
        ("/w/.git/info/exclude", None),
        ("/w/.git/worktrees/x/gitdir", ".git/worktrees/…/gitdir"),
        ("/w/.git/worktrees/x/HEAD", None),
        ("/w/.git/objects/ab", None),
        ("/w/.github/agents/x", ".github/agents"),
        ("/w/.github", None),
        ("/w/.GitHub/Workflows", ".github/workflows"),
        ("/w/.bashrc", ".bashrc"),
        ("/w/.Envrc.", ".envrc"),
        ("/w/Jenkinsfile", "jenkinsfile"),
        ("/w/.ollm/config.yaml", ".ollm"),
        ("/", None),
        ("/w/src/a.py", None),
    ],
)
def test_the_part_of_a_path_that_steers(path: str, name: str | None) -> None:
    assert find_steering_name(path) == name


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("/w/.github", True),
        ("/w/.github/x", False),
        ("/w/.git/modules", True),
        ("/w/.git/modules/a/b", True),
        ("/w/.git/info", True),
        ("/w/.git/worktrees/x", True),
        ("/w/.git/objects", False),
        ("/w/.git", False),
        ("/w/src", False),
        ("/", False),
    ],
)
def test_directories_that_must_not_be_moved(path: str, whole: bool) -> None:
    assert bool(is_moved_as_a_whole(path)) is whole


def test_secrets_are_looked_for_in_this_home_that_of_the_account_and_the_system() -> None:
    found = list_secret_places("/home/ada")

    assert {"/home/ada/.ssh", f"{find_account_home()}/.ssh", "/etc/shadow", "/home/ada/.config/gh"} <= set(found)
    assert len(list_secret_places(find_account_home())) < len(found)


def test_a_reading_box_shows_of_a_home_programs_and_how_git_is_set_up(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").touch()
    (tmp_path / ".ssh").mkdir()

    kept = [path for path in list_kept_places(str(tmp_path)) if path.startswith(str(tmp_path))]
    assert kept == [str(tmp_path / ".gitconfig")]
    covered = list_covered_places(str(tmp_path))
    assert covered[0] == str(tmp_path)
    assert covered[-2:] == ["/tmp", "/var/tmp"]
    assert "/" not in list_covered_places("/")
