"""Searching: the places, the files, ripgrep and what it finds."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery import FileDiscoveryService, PathMatches
from ollm.tools.framework.base import ToolContext
from ollm.tools.search import ripgrep
from ollm.tools.search.ripgrep import FoundLine, MatchCollector, PrintedText, collect_output
from ollm.tools.search.scope import ReadableFiles, SearchScope, resolve_scope, select_readable
from tests.cli.command import ollm


def plant(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("class Turn:\n    def run(self):\n        return 1\n")
    (root / "src" / "b.py").write_text("class Other:\n    def run(self):\n        return 2\n")
    (root / ".env").write_text("def secret(): pass\n")
    return root


def read(root: Path, home: Path, arguments: str) -> tuple[int, str]:
    done = ollm("tools", "run", "read_file", "--args", arguments, home=home, cwd=root)
    return done.returncode, done.stdout + done.stderr


def test_a_symbol_alone_is_found_in_the_workspace(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    assert read(root, tmp_path / "home", '{"symbol": "Turn.run"}') == (
        0,
        "[src/a.py, lines 2 to 3]\n    def run(self):\n        return 1\n",
    )


def test_a_symbol_in_several_files_is_not_guessed(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    code, said = read(root, tmp_path / "home", '{"path": "src", "symbol": "run"}')

    assert code == 1
    assert "run is defined in src/a.py (line 2), src/b.py (line 2). Say which with path." in said


def test_a_symbol_of_nobody_and_one_in_a_private_file(tmp_path: Path) -> None:
    root = plant(tmp_path / "project")

    for name in ("nobody", "secret"):
        code, said = read(root, tmp_path / "home", f'{{"symbol": "{name}"}}')
        assert code == 1
        assert f"No file in . defines {name}. Search for it with grep." in said


def test_without_a_symbol_a_path_is_still_needed(tmp_path: Path) -> None:
    code, said = read(plant(tmp_path / "project"), tmp_path / "home", "{}")

    assert code == 1
    assert "path" in said


def record(
    kind: str, path: str = "a", text: str = "hit\n", number: int = 1, start: int | None = 0, **more: Any
) -> bytes:
    data = {
        "path": {"text": path},
        "lines": {"text": text},
        "line_number": number,
        "submatches": [] if start is None else [{"start": start}],
        **more,
    }
    return json.dumps({"type": kind, "data": data}).encode() + b"\n"


def collect(*chunks: bytes, wanted: tuple[str, ...] = ("a", "b")) -> MatchCollector:
    collector = MatchCollector(wanted)
    for chunk in chunks:
        collector.feed(chunk)
    return collector


def test_it_does_not_matter_where_chunks_are_cut() -> None:
    data = record("match") + record("match", "b", "ä\r\n", 3)

    whole = collect(data)
    bytewise = collect(*(data[place : place + 1] for place in range(len(data))))

    assert whole.files == bytewise.files
    assert whole.files["b"] == [FoundLine(3, "ä", True, True)]


def test_bytes_that_are_no_text_are_replaced_and_names_kept() -> None:
    name = base64.b64encode(b"\xff").decode()
    line = {
        "type": "match",
        "data": {"path": {"bytes": name}, "lines": {"bytes": name}, "line_number": 1, "submatches": []},
    }

    found = collect(json.dumps(line).encode() + b"\n", wanted=("\udcff",))
    assert found.files == {"\udcff": [FoundLine(1, "\ufffd", True, True)]}


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


async def test_without_ripgrep_it_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(tree / "missing"))

    with pytest.raises(ToolFailure) as caught:
        await search(tree, ["a.txt"], "x")
    assert (caught.value.kind, caught.value.message) == ("NotFound", "ripgrep (rg) is not installed; grep needs it.")


@pytest.fixture
def discovery(tmp_path: Path) -> FileDiscoveryService:
    return FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")


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
