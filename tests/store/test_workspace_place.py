"""Where a workspace keeps what is its own: in itself, or in a corner of the home."""

import json
from pathlib import Path

import pytest

from ollm.config.environment import Home
from ollm.store.workspace_place import (
    ensure_fallback_directory,
    ensure_usable,
    ensure_workspace_directory,
    find_database,
    find_databases,
    find_untrusted_memory,
    get_fallback_directory,
    is_same_path,
)
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user


def test_a_workspace_that_is_the_home_keeps_its_database_apart(tmp_path: Path) -> None:
    home = Home(root=tmp_path / ".ollm")

    place = ensure_workspace_directory(tmp_path, home)

    assert place.parent == home.workspaces
    assert ensure_workspace_directory(tmp_path, home) == place


@covers("W33")
def test_its_files_are_kept_out_of_git(tmp_path: Path) -> None:
    place = ensure_workspace_directory(tmp_path, Home(root=tmp_path / "home"))

    assert place == tmp_path / ".ollm"
    assert {"memory.db*", "*.lock"} <= set((place / ".gitignore").read_text().split())


def test_a_read_only_workspace_keeps_its_database_apart() -> None:
    def body(directory: Path) -> None:
        workspace = directory / "project"
        workspace.mkdir(mode=0o555)
        home = Home(root=directory / "home")

        assert ensure_workspace_directory(workspace, home).parent == home.workspaces

    as_ordinary_user(body)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_workspace_has_a_private_directory_of_its_own(workspace: Path, home: Home) -> None:
    place = ensure_workspace_directory(workspace, home)

    assert place == workspace / ".ollm"
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / ".gitignore").read_text() == "memory.db*\n*.lock\n.gitignore\n"
    assert (place / ".gitignore").stat().st_mode & 0o711 == 0o600
    mark = get_fallback_directory(workspace, home) / "made-here"
    assert mark.stat().st_mode & 0o777 == 0o600


def test_the_corner_of_the_home_is_named_by_where_the_workspace_really_is(
    tmp_path: Path, workspace: Path, home: Home
) -> None:
    (tmp_path / "link").symlink_to("work")
    corner = get_fallback_directory(workspace, home)

    assert corner.parent == home.workspaces
    assert len(corner.name) == 32
    assert get_fallback_directory(tmp_path / "link", home) == corner
    assert get_fallback_directory(tmp_path, home) != corner
    assert not corner.exists()
    assert ensure_fallback_directory(workspace, home) == corner
    assert corner.stat().st_mode & 0o777 == 0o700


def test_a_memory_that_came_with_the_workspace_is_used_only_where_it_is_trusted(workspace: Path, home: Home) -> None:
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "memory.db").write_bytes(b"theirs")

    assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    home.root.mkdir(exist_ok=True)
    for said in (b"not json", b"[]", b"{}", b'{"workspaces":null}', b'{"workspaces":{"/other":{}}}'):
        home.trust.write_bytes(said)
        assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    home.trust.write_text(json.dumps({"workspaces": {str(workspace.resolve()): {}}}))
    assert ensure_workspace_directory(workspace, home) == workspace / ".ollm"


def test_a_memory_that_came_with_an_untrusted_workspace_is_named(workspace: Path, home: Home) -> None:
    own = workspace / ".ollm" / "memory.db"
    assert find_untrusted_memory(workspace, home) is None
    own.parent.mkdir()
    assert find_untrusted_memory(workspace, home) is None
    own.write_bytes(b"theirs")
    assert find_untrusted_memory(workspace, home) == own
    home.root.mkdir(exist_ok=True)
    home.trust.write_text(json.dumps({"workspaces": {str(workspace.resolve()): {}}}))
    assert find_untrusted_memory(workspace, home) is None


def test_a_memory_that_was_made_here_is_used_again(workspace: Path, home: Home) -> None:
    place = ensure_workspace_directory(workspace, home)
    (place / "memory.db").write_bytes(b"ours")

    assert ensure_workspace_directory(workspace, home) == place


@pytest.mark.parametrize("linked", [".ollm", ".ollm/memory.db"])
def test_a_link_in_place_of_directory_or_database_is_never_followed(
    tmp_path: Path, workspace: Path, home: Home, linked: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "memory.db").write_bytes(b"x")
    if linked == ".ollm":
        (workspace / ".ollm").symlink_to(elsewhere)
    else:
        ensure_workspace_directory(workspace, home)
        (workspace / ".ollm" / "memory.db").symlink_to(elsewhere / "memory.db")

    assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    assert not (elsewhere / ".gitignore").exists()
    if linked == ".ollm":
        assert find_database(workspace, home) is None
        assert find_databases([workspace], home) == []


def test_an_existing_gitignore_stays(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("mine\n")

    assert ensure_usable(workspace)
    assert (workspace / ".gitignore").read_text() == "mine\n"


def test_what_is_no_directory_or_beneath_none_cannot_be_used(workspace: Path) -> None:
    (workspace / "file").write_text("")

    assert not ensure_usable(workspace / "file")
    assert not ensure_usable(workspace / "missing" / "deeper")


def test_a_database_is_found_where_it_is_and_nothing_is_made(workspace: Path, home: Home) -> None:
    corner = get_fallback_directory(workspace, home)
    assert find_database(workspace, home) is None
    assert not home.root.exists()
    corner.mkdir(parents=True)
    (corner / "memory.db").write_bytes(b"")
    assert find_database(workspace, home) == corner
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "memory.db").write_bytes(b"")
    assert find_database(workspace, home) == workspace / ".ollm"
    assert find_databases([workspace, workspace], home) == [workspace / ".ollm", corner]
    assert find_databases([], home) == [corner]


def test_the_home_itself_holds_no_workspaces_database(tmp_path: Path) -> None:
    home = Home(root=tmp_path / ".ollm")
    home.root.mkdir()
    (home.root / "memory.db").write_bytes(b"")

    assert find_database(tmp_path, home) is None
    assert find_databases([tmp_path], home) == []


def test_one_place_by_two_names_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)

    assert is_same_path(tmp_path / "link" / "x", tmp_path / "x")
    assert not is_same_path(tmp_path / "x", tmp_path / "y")
