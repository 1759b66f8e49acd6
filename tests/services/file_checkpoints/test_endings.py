"""What counts as done by a turn that was cut off, and what as done by somebody else afterwards."""

import os
import time
from pathlib import Path

import pytest

from ollm.services.file_checkpoints.tree import CHANGED_SINCE_CUT_OFF
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, take_turn


def cut_off_turn(place: Path, command: str) -> None:
    """A turn in a process of its own, which is killed after its command."""
    process = os.fork()
    if process == 0:
        checkpoints = make_checkpoints(place)
        checkpoints.begin(SESSION, 1)
        os.chdir(place / "tree")
        os.system(command)
        changed = max(path.lstat().st_ctime_ns for path in (place / "tree").rglob("*"))
        alive = checkpoints.objects.find_beat(SESSION)
        while alive.stat().st_mtime_ns <= changed:
            time.sleep(0.02)
        os._exit(1)
    os.waitpid(process, 0)
    time.sleep(0.02)  # the clock of files moves in steps


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("ours", "both", "by hand", "d/gone", "d/kept", "moved/x"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    return tmp_path


def rewind(place: Path) -> dict[str, str]:
    checkpoints = make_checkpoints(place)
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    _, result, _ = checkpoints.restore(SESSION, 9, plan, "files")
    return {skipped.path: skipped.why for skipped in result.skipped}


def test_what_came_after_the_kill_stays_and_what_came_before_goes_back(place: Path) -> None:
    tree = place / "tree"
    cut_off_turn(place, "echo model > ours; echo model > both; rm d/gone; mkdir new; echo x > new/file")
    (tree / "both").write_text("by hand")
    (tree / "by hand").write_text("by hand")
    (tree / "mine").write_text("by hand")
    (tree / "moved").rename(tree / "elsewhere")  # the times of what is in it do not change

    skipped = rewind(place)

    assert {name: (tree / name).read_text() for name in ("ours", "both", "by hand", "mine", "d/gone")} == {
        "ours": "old",
        "both": "by hand",
        "by hand": "by hand",
        "mine": "by hand",
        "d/gone": "old",
    }
    assert not (tree / "new").exists()
    assert (tree / "elsewhere" / "x").read_text() == "old"
    assert not (tree / "moved").exists()
    assert skipped == dict.fromkeys(("both", "by hand", "mine", "elsewhere/x", "moved/x"), CHANGED_SINCE_CUT_OFF)


def test_the_next_turn_knows_it_still(place: Path) -> None:
    tree = place / "tree"
    cut_off_turn(place, "echo model > ours")
    (tree / "by hand").write_text("by hand")
    with take_turn(make_checkpoints(place), 3):
        (tree / "ours").write_text("again")
        (tree / "by hand").write_text("again")

    assert rewind(place) == {"by hand": CHANGED_SINCE_CUT_OFF}
    assert (tree / "ours").read_text() == "old"
    assert (tree / "by hand").read_text() == "again"


def test_another_session_does_not_lose_its_own_to_one_that_was_cut_off(place: Path) -> None:
    tree = place / "tree"
    cut_off_turn(place, "echo model > ours")
    checkpoints = make_checkpoints(place)
    with take_turn(checkpoints, 1, OTHER):
        (tree / "both").write_text("by the other session")

    plan = checkpoints.plan_rewind(OTHER, 1)

    assert plan is not None
    assert ([step.path for step in plan.steps], plan.skipped) == (["both"], ())


def test_what_a_session_changes_now_is_not_anothers(place: Path) -> None:
    tree = place / "tree"
    running, checkpoints = make_checkpoints(place), make_checkpoints(place)
    with take_turn(checkpoints, 1, OTHER):
        (tree / "ours").write_text("by the other session")
        running.begin(SESSION, 1)
        (tree / "both").write_text("by the session that runs")
    (tree / "d" / "kept").write_text("by the session that runs")

    plan = checkpoints.plan_rewind(OTHER, 1)
    running.end()

    assert plan is not None
    assert {step.path for step in plan.steps} == {"ours"}
    assert {skipped.path for skipped in plan.skipped} == {"both", "d/kept"}


def test_a_turn_without_a_sign_of_life_proves_nothing(place: Path) -> None:
    cut_off_turn(place, "echo model > ours")
    (place / "saved" / "sessions" / f"{SESSION}.alive").unlink()

    assert set(rewind(place)) == {"ours"}
