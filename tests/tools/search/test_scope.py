"""Where glob, grep and ls look, and how paths are shown."""

import os
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery import FileDiscoveryService, PathMatches
from ollm.tools.framework.base import ToolContext
from ollm.tools.search.scope import (
    ReadableFiles,
    SearchScope,
    render_name,
    render_with_notes,
    resolve_scope,
    select_readable,
)


@pytest.fixture
def discovery(tmp_path: Path) -> FileDiscoveryService:
    return FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")


async def test_a_directory_is_looked_into_and_a_file_is_looked_at(
    context: ToolContext, workspace: Path, discovery: FileDiscoveryService
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "f").write_text("")

    assert await resolve_scope(context, discovery, ".") == SearchScope(root=workspace, workspace=workspace)
    assert await resolve_scope(context, discovery, "sub") == SearchScope(root=workspace / "sub", workspace=workspace)
    assert await resolve_scope(context, discovery, "sub/f") == SearchScope(
        root=workspace / "sub", workspace=workspace, file="f"
    )


async def test_an_ignored_place_is_looked_into_because_it_was_named(
    context: ToolContext, workspace: Path, discovery: FileDiscoveryService
) -> None:
    (workspace / "node_modules").mkdir()

    found = await resolve_scope(context, discovery, "node_modules")

    [note] = found.notes
    assert note.startswith("node_modules is ignored (")
    assert note.endswith("); searched because you named it")


async def test_places_that_are_none(context: ToolContext, workspace: Path, discovery: FileDiscoveryService) -> None:
    os.mkfifo(workspace / "pipe")

    with pytest.raises(ToolFailure) as missing:
        await resolve_scope(context, discovery, "missing")
    assert missing.value.kind == "FileNotFound"
    with pytest.raises(ToolFailure) as pipe:
        await resolve_scope(context, discovery, "pipe")
    assert (pipe.value.kind, pipe.value.message) == ("NotARegularFile", "pipe is neither a file nor a directory.")
    with pytest.raises(ToolFailure) as outside:
        await resolve_scope(context, discovery, "..")
    assert outside.value.kind == "OutsideWorkspace"


@pytest.mark.parametrize(
    ("root", "relative", "within", "shown"),
    [
        ("/w", "a/b", "/w", "a/b"),
        ("/w", "", "/w", "."),
        ("/w/sub", "x", "/w", "sub/x"),
        ("/other", "x", None, "/other/x"),
        ("/other", "", None, "/other"),
    ],
)
def test_paths_are_shown_from_the_workspace_or_absolute(
    root: str, relative: str, within: str | None, shown: str
) -> None:
    scope = SearchScope(root=Path(root), workspace=Path("/w"))

    assert (scope.within, scope.render_path(relative)) == (within, shown)


def test_a_file_behind_a_link_put_in_its_place_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "f").write_text("")
    (root / "out").symlink_to("/etc")
    scope = SearchScope(root=root, workspace=root)

    assert scope.still_contains("f")
    assert not scope.still_contains("out/passwd")


@pytest.mark.parametrize(
    ("name", "shown"), [("a b", "a b"), ("a\nb\tc", "a␊b␉c"), ("\udcff", "\ufffd"), ("a\x1b[1m", "a␛[1m")]
)
def test_controls_in_names_are_made_visible(name: str, shown: str) -> None:
    assert render_name(name) == shown


def test_only_files_that_may_be_read_unasked_are_kept(context: ToolContext, workspace: Path) -> None:
    scope = SearchScope(root=workspace, workspace=workspace)
    found = PathMatches(paths=["a", "s/.env", "s/b"], in_part=frozenset({"x"}), too_deep=1)

    kept = select_readable(context, scope, found)

    assert (kept.paths, kept.skipped, kept.in_part) == (["a", "s/b"], 1, frozenset({"x", "s"}))
    assert found.notes
    assert kept.notes == (
        "1 file that may contain secrets (.env and the like) was skipped; name one to read it",
        *found.notes,
    )
    unknown = select_readable(context, scope, PathMatches(paths=["a"]))
    assert unknown == ReadableFiles(paths=["a"])
    assert unknown.notes == ()


def test_notes_stand_below_the_lines() -> None:
    assert render_with_notes(["a", "b"], ["n"]) == "a\nb\n[n]"
    assert render_with_notes([], []) == ""
