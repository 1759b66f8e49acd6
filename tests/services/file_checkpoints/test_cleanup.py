"""What is thrown away, and what is not."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.domain.clock import now
from ollm.domain.errors import StorageError, UsageError
from ollm.services.file_checkpoints import CheckpointEraser, CheckpointPlace, CheckpointsOffError, FileCheckpoints
from ollm.services.file_checkpoints.records import drop_old_places, drop_old_records
from ollm.services.file_discovery import FileDiscoveryService
from ollm.store.file_objects import FileObjects
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, read_state, take_turn


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


def test_a_place_goes_once_its_newest_use_is_older_than_the_days(tmp_path: Path) -> None:
    today = datetime(2026, 1, 31, tzinfo=UTC)
    limit = int((today - timedelta(days=30)).timestamp())
    for name, newest in (("own", limit - 9), ("older", limit - 1), ("just", limit), ("newer", limit + 1)):
        for session, used in (("a", newest), ("b", limit - 99)):
            path = tmp_path / name / "sessions" / session
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (used, used))
    (tmp_path / "empty").mkdir()

    drop_old_places(tmp_path / "own", today, 30)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "just", "newer", "own"]


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
