"""Stretches of a turn: what changes inside one is the session's, what changes between two is not."""

import os
import time
from pathlib import Path

from ollm.services.file_checkpoints.records import group_turns
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, take_turn


def test_what_changes_between_two_commands_of_a_turn_stays(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("ours", "theirs", "both"):
        (tree / name).write_text("old")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "ours").write_text("new")
    (tree / "theirs").write_text("by hand")
    (tree / "both").write_text("by hand")
    with take_turn(checkpoints, 1):
        (tree / "ours").write_text("newer")
        (tree / "both").write_text("formatted by hand")

    plan = checkpoints.plan_rewind(SESSION, 1)

    assert plan is not None
    assert ([step.path for step in plan.steps], [one.path for one in plan.skipped]) == (["ours"], ["both", "theirs"])
    assert [len(group) for group in group_turns(checkpoints.list_records(SESSION))] == [2]


def test_one_that_is_killed_has_changed_only_what_it_named(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("ours", "theirs"):
        (tree / name).write_text("old")
    process = os.fork()
    if process == 0:
        checkpoints = make_checkpoints(tmp_path)
        checkpoints.begin(SESSION, 1, names=["ours"])
        checkpoints.end()
        (tree / "theirs").write_text("by hand")
        checkpoints.begin(SESSION, 1, names=["ours"])
        (tree / "ours").write_text("new")
        changed, alive = (tree / "ours").stat().st_ctime_ns, checkpoints.objects.find_beat(SESSION)
        while alive.stat().st_mtime_ns <= changed:
            time.sleep(0.02)
        os._exit(1)
    os.waitpid(process, 0)

    plan = make_checkpoints(tmp_path).plan_rewind(SESSION, 1)

    assert plan is not None
    assert ([step.path for step in plan.steps], [one.path for one in plan.skipped]) == (["ours"], ["theirs"])


def test_a_redo_brings_back_all_that_another_session_left_alone_meanwhile(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("a", "b"):
        (tree / name).write_text("old")
    checkpoints, other = make_checkpoints(tmp_path), make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "a").write_text("new")
        (tree / "b").write_text("new")
    with take_turn(other, 1, OTHER):  # the other one's command runs while this one goes back
        plan = checkpoints.plan_rewind(SESSION, 1)
        assert plan is not None
        rewound, _, _ = checkpoints.restore(SESSION, 9, plan, "files")
        (tree / "b").write_text("of the other")

    again = checkpoints.plan_redo(SESSION, rewound.number)

    assert ([step.path for step in again.steps], [one.path for one in again.skipped]) == (["a"], ["b"])
