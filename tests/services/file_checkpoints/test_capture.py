"""Capturing states of files, and cleaning up."""

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.domain.clock import now
from ollm.domain.errors import StorageError, UsageError
from ollm.services.file_checkpoints.capture import CheckpointsOffError, TreeTaker
from ollm.services.file_checkpoints.records import CheckpointEraser, drop_old_records
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import CheckpointPlace, decode_tree, iter_entries
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.store.file_objects import FileObjects
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, read_state, take_turn


def make_taker(place: Path) -> TreeTaker:
    scan = FileDiscoveryService(FileDiscoverySettings(), place / "home").scan_tree
    where = CheckpointPlace(root=place / "tree", folder=place / "saved", user_home=place / "home")
    return TreeTaker(where, CheckpointSettings(), scan, FileObjects(place / "saved"))


def test_another_process_reads_only_what_changed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(20):
        (tmp_path / "tree" / str(number)).write_text(str(number))
    deadline = time.monotonic() + 60
    while True:  # until the files are older than a tick of the clock
        checkpoints = make_checkpoints(tmp_path)
        with take_turn(checkpoints, 1):
            pass
        if make_taker(tmp_path).take().read == 0:
            break
        assert time.monotonic() < deadline

    (tmp_path / "tree" / "3").write_text("changed")

    assert make_taker(tmp_path).take().read == 1


def test_an_index_that_is_damaged_or_outlived_its_objects_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("content")
    objects = FileObjects(tmp_path / "saved")
    objects.index.parent.mkdir()
    objects.index.write_bytes(b"\xc1 not an index")
    first = make_taker(tmp_path)
    assert first.take().files == 1
    time.sleep(0.1)  # until the file is older than a tick of the clock
    first.take()

    objects.index.unlink()
    first.save_index(0)
    objects.remove_others(set())
    tree = make_taker(tmp_path).take()

    (_, entry) = next(iter_entries(objects, tree.digest))
    assert objects.read(entry.value) == b"content"


def test_links_pipes_and_ignored_names_are_told_apart(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "node_modules").mkdir(parents=True)
    (tree / ".git").mkdir()
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "ignored link").symlink_to("x")
    (tree / ".gitignore").write_text("ignored*\n")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")

    taken = make_taker(tmp_path).take()

    entries = decode_tree(FileObjects(tmp_path / "saved").read(taken.digest))
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


def test_what_goes_while_it_is_looked_at_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "away").mkdir(parents=True)
    for name in ("away/x", "gone", "stays"):
        (tree / name).write_text(name)
    scan = FileDiscoveryService.scan_tree

    def scan_and_remove(self: FileDiscoveryService, *more: Any) -> Any:
        found = scan(self, *more)
        (tree / "gone").unlink(missing_ok=True)
        shutil.rmtree(tree / "away", ignore_errors=True)
        return found

    monkeypatch.setattr(FileDiscoveryService, "scan_tree", scan_and_remove)
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "stays").write_text("changed")

    (record,) = checkpoints.list_records(SESSION)
    assert [change.path for change in checkpoints.list_changes(record)] == ["stays"]


def test_with_a_session_goes_what_no_other_shares(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "shared").write_bytes(os.urandom(3000))
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "own").write_bytes(os.urandom(5000))
    (tree / "own").unlink()
    with take_turn(checkpoints, 1, OTHER):
        (tree / "shared").unlink()
    home = tmp_path / "checkpoints"
    home.mkdir()
    (tmp_path / "saved").rename(home / "w")

    CheckpointEraser(home).erase(SESSION)
    (home / "w").rename(tmp_path / "saved")

    again = make_checkpoints(tmp_path)
    assert 3000 <= again.objects.measure_bytes() < 5000
    assert again.list_records(SESSION) == []
    plan = again.plan_rewind(OTHER, 1)
    assert plan is not None
    again.restore(OTHER, 9, plan, "files")
    assert "shared" in read_state(tree)

    (tmp_path / "saved").rename(home / "w")
    CheckpointEraser(home).erase(OTHER)
    (home / "w").rename(tmp_path / "saved")
    assert again.objects.measure_bytes() == again.objects.load_state().bytes == 0


def test_old_checkpoints_go_and_are_said_to_be_gone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "a").write_bytes(os.urandom(4000))

    with checkpoints.objects.hold_lock():
        drop_old_records(checkpoints.objects, now() + timedelta(days=6), 7)
        assert checkpoints.plan_rewind is not None
        assert checkpoints.objects.measure_bytes() > 4000
        drop_old_records(checkpoints.objects, now() + timedelta(days=8), 7)

    assert checkpoints.objects.measure_bytes() == 0
    with pytest.raises(UsageError, match="not saved"):
        checkpoints.plan_rewind(SESSION, 1)


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    checkpoints = make_checkpoints(tmp_path, max_total=60_000)
    for number in range(12):
        with take_turn(checkpoints, number):
            (tree / "a").write_bytes(os.urandom(10_000))
    last = (tree / "a").read_bytes()

    assert checkpoints.objects.measure_bytes() <= 60_000
    with pytest.raises(UsageError):
        checkpoints.plan_rewind(SESSION, 1)
    plan = checkpoints.plan_rewind(SESSION, 11)
    assert plan is not None
    record, _, _ = checkpoints.restore(SESSION, 30, plan, "files")
    assert (tree / "a").read_bytes() != last
    checkpoints.restore(SESSION, 30, checkpoints.plan_redo(SESSION, record.number), "files", "redo")
    assert (tree / "a").read_bytes() == last


def test_a_lower_limit_throws_away_what_is_too_much_and_says_so(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(3):
        with take_turn(make_checkpoints(tmp_path), number):
            (tree / "a").write_bytes(os.urandom(10_000))

    less = make_checkpoints(tmp_path, max_total=25_000)
    with take_turn(less, 9):
        (tree / "b").touch()
    assert less.objects.measure_bytes() <= 25_000
    assert [(record.kind, record.message_id) for record in less.list_records(SESSION)][-1] == ("turn", 9)

    with pytest.raises(CheckpointsOffError, match=r"more than checkpoints\.maxTotal"):
        make_checkpoints(tmp_path, max_total=5_000).begin(SESSION, 11)
    assert less.objects.measure_bytes() == 0


def test_what_other_workspaces_saved_long_ago_goes_too(tmp_path: Path) -> None:
    saved = tmp_path / "checkpoints"
    for name in ("old", "new"):
        with take_turn(make_place(tmp_path, saved, name), 1):
            pass
    for path in (saved / "old" / "sessions").iterdir():
        os.utime(path, (1, 1))

    with take_turn(make_place(tmp_path, saved, "here"), 1):
        pass

    assert sorted(path.name for path in saved.iterdir()) == ["here", "new"]


def make_place(tmp_path: Path, saved: Path, name: str) -> FileCheckpoints:
    (tmp_path / name).mkdir()
    discovery = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    where = CheckpointPlace(root=tmp_path / name, folder=saved / name, user_home=tmp_path / "home")
    return FileCheckpoints(where, CheckpointSettings(), discovery.scan_tree, now)


def test_a_place_that_does_not_know_the_session_is_not_touched_and_one_that_cannot_be_changed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("a")
    with take_turn(make_checkpoints(tmp_path), 1):
        (tmp_path / "tree" / "a").write_text("b")
    home = tmp_path / "checkpoints"
    home.mkdir()
    (tmp_path / "saved").rename(home / "w")
    before = read_state(home)
    CheckpointEraser(home).erase(OTHER)
    assert read_state(home) == before

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileObjects, "remove_session", refuse)
    with pytest.raises(StorageError, match=f"Cannot remove the checkpoints in {home / 'w'}: Permission denied."):
        CheckpointEraser(home).erase(SESSION)
