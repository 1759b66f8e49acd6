"""Two sessions whose workspaces lie one in the other: neither takes back what the other did."""

import time
from pathlib import Path

import pytest

from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.domain.clock import now
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import CheckpointPlace
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.store.workspace_place import name_workspace
from tests.services.file_checkpoints.trees import OTHER, SESSION, take_turn


def open_place(root: Path, home: Path) -> FileCheckpoints:
    discovery = FileDiscoveryService(FileDiscoverySettings(), home)
    place = CheckpointPlace(root=root, folder=home / name_workspace(root), user_home=home)
    return FileCheckpoints(place, CheckpointSettings(), discovery.scan_tree, now)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("mine_is_outer", [True, False])
def test_what_a_session_of_a_workspace_inside_or_around_did_stays(
    tmp_path: Path, mine_is_outer: bool, ended: bool
) -> None:
    outer, inner = tmp_path / "tree", tmp_path / "tree" / "sub"
    inner.mkdir(parents=True)
    (inner / "x").write_text("old")
    (inner / "own").write_text("old")
    roots = (outer, inner) if mine_is_outer else (inner, outer)
    mine, theirs = (open_place(root, tmp_path / "home") for root in roots)
    with take_turn(mine, 1):
        (roots[0] / "own").write_text("mine")
        theirs.begin(OTHER, 1)
        (inner / "x").write_text("theirs")
        (inner / "new").write_text("theirs")
        if ended:
            theirs.end()

    plan = mine.plan_rewind(SESSION, 1)
    theirs.end()
    forced = mine.plan_rewind(SESSION, 1, force=True)

    assert plan is not None
    assert forced is not None
    left = {Path(one.path).name for one in plan.skipped}
    assert left >= {"x", "new"}
    assert ("own" in {step.path for step in plan.steps}) == (ended or mine_is_outer)
    assert {Path(step.path).name for step in forced.files} == {"x", "new", "own"}


def test_what_they_did_before_is_no_obstacle(tmp_path: Path) -> None:
    outer, inner = tmp_path / "tree", tmp_path / "tree" / "sub"
    inner.mkdir(parents=True)
    mine, theirs = open_place(outer, tmp_path / "home"), open_place(inner, tmp_path / "home")
    with take_turn(theirs, 1, OTHER):
        (inner / "x").write_text("theirs")
    time.sleep(0.01)  # times are told in thousandths
    with take_turn(mine, 1):
        (inner / "x").write_text("mine")

    plan = mine.plan_rewind(SESSION, 1)

    assert plan is not None
    assert ([step.path for step in plan.steps], plan.skipped) == (["sub/x"], ())
