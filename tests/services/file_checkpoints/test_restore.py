"""A restore that is killed at any of its steps is finished by whoever comes next, or has not begun."""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import BusyError
from ollm.services.file_checkpoints.restore import (
    peek_journal,
)
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, read_state, take_turn
from tests.sizes import size

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.chmod", "os.truncate")


def make_changes(place: Path) -> None:
    """One of every kind: content, mode, new, gone, a file for a directory and the other way round, links."""
    tree = place / "tree"
    (tree / "d" / "e").mkdir(parents=True)
    for name in ("content", "mode", "gone", "becomes link", "becomes folder", "d/e/deep"):
        (tree / name).write_text(f"old {name}")
    (tree / "link").symlink_to("content")
    checkpoints = make_checkpoints(place)
    with take_turn(checkpoints, 1):
        (tree / "content").write_text("new")
        (tree / "mode").chmod(0o755)
        (tree / "gone").unlink()
        (tree / "becomes link").unlink()
        (tree / "becomes link").symlink_to("/etc")
        (tree / "becomes folder").unlink()
        (tree / "becomes folder").mkdir()
        (tree / "becomes folder" / "inside").write_text("new")
        shutil.rmtree(tree / "d")
        (tree / "d").write_text("a file now")
        (tree / "link").unlink()
        (tree / "new").write_text("new")


def restore_until_killed(place: Path, step: int) -> bool:
    """In a process of its own, killed when it does its so-and-so-manieth step; whether it was."""
    process = os.fork()
    if process == 0:
        checkpoints = make_checkpoints(place)
        plan = checkpoints.plan_rewind(SESSION, 1)
        assert plan is not None
        left = [step]

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            if event in STEPS and (event != "open" or arguments[2] & WRITING):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        checkpoints.restore(SESSION, 3, plan, "files")
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_a_restore_killed_at_any_step_is_whole_afterwards(tmp_path: Path) -> None:
    make_changes(tmp_path)
    last = read_state(tmp_path / "tree")
    shutil.copytree(tmp_path, tmp_path.with_name("copy"), symlinks=True)
    finished = not_begun = 0
    for step in range(1000):
        place = tmp_path.with_name("try")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tmp_path.with_name("copy"), place, symlinks=True)
        killed = restore_until_killed(place, step)

        checkpoints = make_checkpoints(place)
        done = checkpoints.recover()
        state = read_state(place / "tree")

        assert checkpoints.recover() is None
        assert not list((place / "tree").rglob("*.tmp"))
        if killed and done is None and state == last:
            not_begun += 1
            continue
        finished += 1
        wanted = {name: text for name, (kind, _, text) in state.items() if kind == "file"}
        assert wanted == {
            name: f"old {name}".encode()
            for name in ("content", "mode", "gone", "becomes link", "becomes folder", "d/e/deep")
        }, step
        assert state["link"] == ("link", 0, b"content")
        record = checkpoints.list_records(SESSION)[-1]
        assert record.end
        if not killed:
            break
    checkpoints.restore(SESSION, 3, checkpoints.plan_redo(SESSION, record.number), "files", "redo")
    assert read_state(place / "tree") == last
    assert not_begun >= 3
    assert finished > 20


def test_what_was_changed_after_the_kill_is_left_alone(tmp_path: Path) -> None:
    make_changes(tmp_path)
    journal = tmp_path / "saved" / "restore.journal"
    step = 0
    while not journal.exists():
        assert restore_until_killed(tmp_path, step := step + 1)
    (tmp_path / "tree" / "content").write_text("by hand")

    done = make_checkpoints(tmp_path).recover()

    assert done is not None
    assert [skipped.path for skipped in done.result.skipped] == ["content"]
    assert (tmp_path / "tree" / "content").read_text() == "by hand"
    assert (tmp_path / "tree" / "gone").read_text() == "old gone"


def test_a_journal_that_cannot_be_read_never_began(tmp_path: Path) -> None:
    make_changes(tmp_path)
    checkpoints = make_checkpoints(tmp_path)
    checkpoints.objects.journal.write_bytes(b"torn")
    before = read_state(tmp_path / "tree")

    assert checkpoints.recover() is None
    assert not checkpoints.objects.journal.exists()
    assert read_state(tmp_path / "tree") == before


@pytest.mark.parametrize("scope", ["files", "both"])
def test_a_restore_of_talk_too_waits_for_the_talk(tmp_path: Path, scope: str) -> None:
    make_changes(tmp_path)
    checkpoints = make_checkpoints(tmp_path)
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    checkpoints.restore(SESSION, 3, plan, scope)  # type: ignore[arg-type]

    found = make_checkpoints(tmp_path).recover()

    assert (found is not None) == (scope == "both")
    checkpoints.finish_restore()
    assert make_checkpoints(tmp_path).recover() is None


@pytest.mark.parametrize("step", range(size(2, 0), 90, size(11, 1)))
def test_what_is_done_by_hand_between_the_kill_and_the_next_start_outlives_all_that_follows(
    tmp_path: Path, step: int
) -> None:
    make_changes(tmp_path)
    tree = tmp_path / "tree"
    restore_until_killed(tmp_path, step)
    begun = bool(peek_journal(make_checkpoints(tmp_path).objects))
    for name in ("content", "mine", "d"):  # restored or not yet, new, and a file that is to become a directory
        if not (tree / name).is_dir():
            (tree / name).write_text("by hand")
    by_hand = {name for name in ("content", "mine", "d") if (tree / name).is_file()}
    (tree / "new").unlink(missing_ok=True)

    checkpoints = make_checkpoints(tmp_path)
    checkpoints.recover()
    rewinds = [record for record in checkpoints.list_records(SESSION) if record.kind == "rewind"]
    for record in rewinds if begun else ():
        checkpoints.restore(SESSION, 3, checkpoints.plan_redo(SESSION, record.number), "files", "redo")
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    checkpoints.restore(SESSION, 3, plan, "files")

    assert {name for name in by_hand if (tree / name).read_text() == "by hand"} == by_hand
    assert not (tree / "new").exists()


def test_of_two_at_once_the_second_waits_and_finds_its_files_restored(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("old")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "a").write_text("new")
        (tree / "b").write_text("new")
    first, second = (checkpoints.plan_rewind(SESSION, 1) for _ in range(2))
    assert first is not None
    assert second is not None
    checkpoints.restore(SESSION, 9, first, "both")
    with pytest.raises(BusyError, match="right now"):
        make_checkpoints(tmp_path).restore(OTHER, 9, second, "files")
    checkpoints.finish_restore()

    _, result, _ = make_checkpoints(tmp_path).restore(OTHER, 9, second, "files")

    assert result.skipped == ()
    assert [path.read_text() for path in tree.iterdir()] == ["old"]
