"""Going back to any turn of a session, judged by a walk of its own over random trees and changes."""

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm.domain.errors import UsageError
from ollm.services.file_checkpoints.service import FileCheckpoints
from tests.services.file_checkpoints.trees import (
    OTHER,
    SESSION,
    change_tree,
    make_checkpoints,
    read_state,
    take_turn,
)
from tests.sizes import size

EXAMPLES = size(50, 1500)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), turns=st.integers(1, 4), back=st.integers(0, 3), fresh=st.booleans())
def test_any_turn_can_be_gone_back_to_and_forth_again(seed: int, turns: int, back: int, fresh: bool) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        tree = place / "tree"
        tree.mkdir()
        change_tree(tree, chance, 12)
        (tree / "node_modules").mkdir()
        (tree / "node_modules" / "kept").write_text("ignored")
        checkpoints = make_checkpoints(place)
        before = []
        for number in range(turns):
            before.append(read_state(tree))
            with take_turn(checkpoints, 2 * number + 1):
                change_tree(tree, chance, chance.randrange(10))
        last = read_state(tree)
        chosen = min(back, turns - 1)
        if fresh:
            checkpoints = make_checkpoints(place)

        plan = checkpoints.plan_rewind(SESSION, 2 * chosen + 1)
        assert plan is not None
        record, result, _ = checkpoints.restore(SESSION, 2 * turns, plan, "files")

        assert (read_state(tree), result.skipped) == (before[chosen], ())
        assert (tree / "node_modules" / "kept").read_text() == "ignored"
        checkpoints.restore(SESSION, 2 * turns, checkpoints.plan_redo(SESSION, record.number), "files", "redo")
        assert read_state(tree) == last


@pytest.fixture
def checkpoints(tmp_path: Path) -> FileCheckpoints:
    (tmp_path / "tree").mkdir()
    return make_checkpoints(tmp_path)


def rewind(checkpoints: FileCheckpoints, message_id: int, *, force: bool = False) -> dict[str, str]:
    """Goes back, and gives why each skipped path was."""
    plan = checkpoints.plan_rewind(SESSION, message_id, force=force)
    assert plan is not None
    _, result, _ = checkpoints.restore(SESSION, 99, plan, "files")
    return {skipped.path: skipped.why for skipped in result.skipped}


def test_what_others_changed_before_between_and_after_turns_stays_and_is_named(checkpoints: FileCheckpoints) -> None:
    tree = checkpoints.root
    for name in ("ours", "between", "after"):
        (tree / name).write_text("old")
    with take_turn(checkpoints, 1):
        for name in ("ours", "between", "after"):
            (tree / name).write_text("by the model")
    (tree / "between").write_text("by hand")
    with take_turn(checkpoints, 3):
        (tree / "ours").write_text("by the model again")
    (tree / "after").write_text("by hand, later")
    (tree / "new by hand").write_text("mine")

    skipped = rewind(checkpoints, 1)

    assert {name: (tree / name).read_text() for name in ("ours", "between", "after", "new by hand")} == {
        "ours": "old",
        "between": "by hand",
        "after": "by hand, later",
        "new by hand": "mine",
    }
    assert set(skipped) == {"between", "after", "new by hand"}
    assert set(skipped.values()) == {"changed since, not by the model"}


def test_files_that_rules_hid_then_are_not_removed_when_the_rules_change(checkpoints: FileCheckpoints) -> None:
    tree = checkpoints.root
    (tree / ".gitignore").write_text(".env\nlogs/\n")
    (tree / ".env").write_text("KEY=1")
    (tree / "same").write_text("as before")
    (tree / "other").write_text("as before")
    (tree / "logs").mkdir()
    (tree / "logs" / "one").write_text("x")
    with take_turn(checkpoints, 1):
        (tree / ".gitignore").write_text("*.tmp\nkept.txt\nsame\nother\n")
        (tree / "other").write_text("changed, and hidden")
        (tree / "kept.txt").write_text("new, and ignored")

    assert rewind(checkpoints, 1) == {"kept.txt": "is new, and ignored now", "other": "is ignored now"}

    assert (tree / "other").read_text() == "changed, and hidden"
    assert (tree / ".gitignore").read_text() == ".env\nlogs/\n"
    assert (tree / ".env").read_text() == "KEY=1"
    assert (tree / "logs" / "one").read_text() == "x"


def test_a_directory_that_became_a_link_leads_nothing_outside(tmp_path: Path, checkpoints: FileCheckpoints) -> None:
    tree, outside = checkpoints.root, tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("not ours")
    (tree / "d").mkdir()
    (tree / "d" / "f").write_text("old")
    with take_turn(checkpoints, 1):
        (tree / "d" / "f").write_text("new")
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    (tree / "d" / "f").unlink()
    (tree / "d").rmdir()
    (tree / "d").symlink_to(outside)

    _, result, _ = checkpoints.restore(SESSION, 9, plan, "files")

    assert (outside / "f").read_text() == "not ours"
    assert [skipped.path for skipped in result.skipped] == ["d/f"]


def test_nothing_changed_since_is_nothing_to_do(checkpoints: FileCheckpoints) -> None:
    with take_turn(checkpoints, 1):
        (checkpoints.root / "a").write_text("x")

    assert checkpoints.plan_rewind(SESSION, 3) is None
    assert checkpoints.plan_rewind(OTHER, 1) is None


def test_a_state_that_could_not_be_taken_is_said_to_be_unknown(checkpoints: FileCheckpoints) -> None:
    checkpoints.note_missed(SESSION, 1)
    with take_turn(checkpoints, 3):
        (checkpoints.root / "a").write_text("x")

    with pytest.raises(UsageError, match="before message 1 are not saved"):
        checkpoints.plan_rewind(SESSION, 1)
    assert rewind(checkpoints, 3) == {}


def test_a_change_within_one_tick_of_the_clock_is_seen(checkpoints: FileCheckpoints) -> None:
    path = checkpoints.root / "a"
    path.write_text("1")
    with take_turn(checkpoints, 1):
        status = path.stat()
        path.write_text("2")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert [change.path for change in checkpoints.list_changes(checkpoints.list_records(SESSION)[0])] == ["a"]
