"""Finds the `.env` files of a workspace, reading again only what has changed."""

import os
import time
from pathlib import Path

import pytest

from ollm.system.sandbox import environment_files
from ollm.system.sandbox.environment_files import EnvironmentFiles, TooManyDirectoriesError


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def find(root: Path, finder: EnvironmentFiles | None = None) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in (finder or EnvironmentFiles()).find(str(root)))


def test_they_are_found_at_any_depth_but_for_examples(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a/.env.local", "a/b/.ENV", "a/.env.example", "env", "a/x.env", ".envs/inside")

    assert find(tmp_path) == [".env", ".envs", "a/.env.local", "a/b/.ENV"]


def test_links_are_not_followed_and_what_is_missing_is_empty(tmp_path: Path) -> None:
    write(tmp_path / "outside", ".env")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")

    assert find(tmp_path / "work") == []
    assert find(tmp_path / "missing") == []


def test_new_and_removed_ones_are_seen_the_next_time(tmp_path: Path) -> None:
    finder = EnvironmentFiles()
    write(tmp_path, "a/.env")
    assert find(tmp_path, finder) == ["a/.env"]
    write(tmp_path, "a/.env.two", "b/.env")
    assert find(tmp_path, finder) == ["a/.env", "a/.env.two", "b/.env"]
    (tmp_path / "a" / ".env").unlink()
    assert find(tmp_path, finder) == ["a/.env.two", "b/.env"]


def test_a_directory_that_has_not_changed_for_long_is_not_read_again(tmp_path: Path) -> None:
    finder = EnvironmentFiles()
    write(tmp_path, ".env")
    long_ago = time.time_ns() - 10**12
    os.utime(tmp_path, ns=(long_ago, long_ago))
    assert find(tmp_path, finder) == [".env"]
    (tmp_path / ".env").unlink()
    os.utime(tmp_path, ns=(long_ago, long_ago))
    assert find(tmp_path, finder) == [".env"], "its time says that nothing changed"
    os.utime(tmp_path)
    assert find(tmp_path, finder) == []


def test_a_directory_that_changed_just_now_is_read_again(tmp_path: Path) -> None:
    finder = EnvironmentFiles()
    write(tmp_path, ".env")
    ahead = time.time_ns() + 10**12
    os.utime(tmp_path, ns=(ahead, ahead))
    assert find(tmp_path, finder) == [".env"]
    (tmp_path / ".env").unlink()
    os.utime(tmp_path, ns=(ahead, ahead))
    assert find(tmp_path, finder) == []


@pytest.mark.parametrize(("count", "too_many"), [(3, False), (4, True)])
def test_a_tree_that_is_too_large_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, too_many: bool
) -> None:
    monkeypatch.setattr(environment_files, "MAX_DIRECTORIES", 4)
    for number in range(count):
        (tmp_path / str(number)).mkdir()

    if too_many:
        with pytest.raises(TooManyDirectoriesError):
            find(tmp_path)
    else:
        assert find(tmp_path) == []
