"""What is read of a tree, and what is not read again."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.files import DirectoryContent
from ollm.services.file_checkpoints import capture
from ollm.services.file_checkpoints.capture import (
    SavedIndex,
    TreeTaker,
)
from ollm.services.file_checkpoints.tree import TreeEntry, decode_tree, iter_entries
from tests.services.file_checkpoints.trees import make_checkpoints, take_turn


def test_another_process_reads_only_what_changed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(20):
        (tmp_path / "tree" / str(number)).write_text(str(number))
    deadline = time.monotonic() + 60
    while True:  # until the files are older than a tick of the clock
        checkpoints = make_checkpoints(tmp_path)
        with take_turn(checkpoints, 1):
            pass
        if make_checkpoints(tmp_path)._trees.take().read == 0:
            break
        assert time.monotonic() < deadline

    (tmp_path / "tree" / "3").write_text("changed")

    assert make_checkpoints(tmp_path)._trees.take().read == 1


def test_an_index_that_is_damaged_or_outlived_its_objects_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("content")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        pass
    checkpoints.objects.index.write_bytes(b"\xc1 not an index")
    assert make_checkpoints(tmp_path)._trees.take().files == 1

    checkpoints.objects.index.unlink()
    checkpoints._trees.save_index(0)
    checkpoints.objects.remove_others(set())
    tree = make_checkpoints(tmp_path)._trees.take()

    (_, entry) = next(iter_entries(checkpoints.objects, tree.digest))
    assert checkpoints.objects.read(entry.value) == b"content"


def test_links_pipes_and_ignored_names_are_told_apart(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "node_modules").mkdir(parents=True)
    (tree / ".git").mkdir()
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "ignored link").symlink_to("x")
    (tree / ".gitignore").write_text("ignored*\n")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")
    checkpoints = make_checkpoints(tmp_path)

    taken = checkpoints._trees.take()

    entries = decode_tree(checkpoints.objects.read(taken.digest))
    assert {name: entry.kind for name, entry in entries.items()} == {
        ".git": "i",
        ".gitignore": "f",
        "empty": "d",
        "ignored link": "i",
        "link": "l",
        "node_modules": "i",
        "pipe": "x",
    }
    assert entries["link"].value == b"/etc/passwd"
    assert (taken.files, taken.ignored, taken.uncovered) == (2, 3, 1)


def scan_and_then(capture: TreeTaker, change: Callable[[], object]) -> None:
    """What the next look finds has changed by the time it looks closer."""
    scan = capture._scan

    def scan_once(root: str, limit: int, since: float) -> Sequence[DirectoryContent]:
        found, capture._scan = scan(root, limit, since), scan
        change()
        return found

    capture._scan = scan_once


def test_what_goes_or_closes_while_it_is_looked_at_is_gone_or_said_to_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "away").mkdir(parents=True)
    for name in ("away/x", "closed", "fleeing", "gone", "stays"):
        (tree / name).write_text(name)
    failures: dict[str, OSError] = {"closed": PermissionError(13, "no"), "fleeing": FileNotFoundError(2, "gone")}
    open_file = os.open

    def refuse(path: Any, *more: Any, **named: Any) -> int:
        if failure := failures.get(Path(os.fsdecode(path)).name):
            raise failure
        return open_file(path, *more, **named)

    checkpoints = make_checkpoints(tmp_path)
    looking = checkpoints._trees
    scan_and_then(looking, lambda: [(tree / "gone").unlink(), shutil.rmtree(tree / "away")])
    monkeypatch.setattr(capture.os, "open", refuse)
    taken = looking.take()
    monkeypatch.undo()

    entries = decode_tree(checkpoints.objects.read(taken.digest))
    assert entries.keys() == {"closed", "stays"}
    assert entries["closed"] == TreeEntry("x", (tree / "closed").stat().st_mode & 0o7777, b"cannot be read")
    assert (taken.files, taken.uncovered) == (1, 1)


def test_a_file_of_an_unchanged_directory_that_goes_while_it_is_looked_at_is_gone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("gone", "stays"):
        (tree / name).write_text(name)
    checkpoints = make_checkpoints(tmp_path)
    looking, deadline = checkpoints._trees, time.monotonic() + 60
    while not looking._directories:  # until the files are older than a tick of the clock
        assert looking.take().files == 2
        assert time.monotonic() < deadline
    scan_and_then(looking, (tree / "gone").unlink)

    taken = looking.take()

    assert decode_tree(checkpoints.objects.read(taken.digest)).keys() == {"stays"}


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("small")
    checkpoints = make_checkpoints(tmp_path)
    looking = checkpoints._trees
    most = looking._max_file_bytes
    kinds = {}
    for size in (most, most + 1):
        monkeypatch.setattr(capture, "_read_content", lambda *_, size=size: bytes(size))
        (tree / "a").touch()
        taken = looking.take()
        kinds[size] = decode_tree(checkpoints.objects.read(taken.digest))["a"].kind

    assert kinds == {most: "f", most + 1: "x"}


@pytest.mark.parametrize(("version", "believed"), [(1, True), (2, False)])
def test_only_an_index_of_this_version_is_believed(tmp_path: Path, version: int, believed: bool) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("content")
    checkpoints = make_checkpoints(tmp_path)
    objects, looking = checkpoints.objects, checkpoints._trees
    with objects.put_together():
        other = objects.put(b"something else")
    status = (tree / "a").lstat()
    stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)
    saved = SavedIndex(version=version, generation=objects.load_state().generation, files={b"/a": (*stamp, other)})
    objects.index.write_bytes(msgspec.msgpack.encode(saved))

    entry = decode_tree(objects.read(looking.take().digest))["a"]

    assert objects.read(entry.value) == (b"something else" if believed else b"content")


def test_what_was_thrown_away_meanwhile_is_read_and_kept_again(tmp_path: Path) -> None:
    (tmp_path / "tree" / "d").mkdir(parents=True)
    (tmp_path / "tree" / "d" / "a").write_text("content")
    checkpoints = make_checkpoints(tmp_path)
    looking, objects, deadline = checkpoints._trees, checkpoints.objects, time.monotonic() + 60
    while not looking._directories:  # until the file is older than a tick of the clock
        looking.take()
        assert time.monotonic() < deadline
    objects.remove_others(set())

    found = dict(iter_entries(objects, looking.take().digest))

    assert objects.read(found["d/a"].value) == b"content"


def test_a_file_that_becomes_something_else_while_it_is_opened_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("content")
    checkpoints = make_checkpoints(tmp_path)
    get_status = os.fstat

    def see_pipe(descriptor: int) -> os.stat_result:
        is_a = str(Path(f"/proc/self/fd/{descriptor}").readlink()).endswith("/tree/a")
        return os.stat_result([0o010600, *range(9)]) if is_a else get_status(descriptor)

    monkeypatch.setattr(capture.os, "fstat", see_pipe)
    taken = checkpoints._trees.take()
    monkeypatch.undo()

    entry = decode_tree(checkpoints.objects.read(taken.digest))["a"]
    assert (entry.kind, entry.value) == ("x", b"is not a regular file")
