"""Plans of going back: named files, editors, interruptions."""

import os
from pathlib import Path
from typing import Any

import pytest

from ollm.services.file_checkpoints.records import collect_garbage
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import (
    CHANGED_SINCE_CUT_OFF,
    IGNORED,
    PathChange,
    TreeEntry,
    drop_hidden,
)
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, take_turn

FILE, CHANGED = TreeEntry("f", 0o644, b"1"), TreeEntry("f", 0o644, b"2")


def test_a_new_hidden_name_is_told_only_below_a_rule_that_changed() -> None:
    hidden = [PathChange(path, IGNORED, None) for path in ("a", "d/b", "dd/b", "d/.git", "d/e/.ollm")]

    def told(*rules: str) -> list[str]:
        return [one.path for one in drop_hidden([*hidden, *(PathChange(rule, FILE, CHANGED) for rule in rules)])]

    assert told() == []
    assert told("d/.gitignore") == ["d/b", "d/.gitignore"]
    assert told(".ollmignore") == ["a", "d/b", "dd/b", ".ollmignore"]
    assert told("d/other") == ["d/other"]
    both = [PathChange("x", IGNORED, FILE), PathChange("y", None, IGNORED), PathChange("z", FILE, None)]
    assert drop_hidden(both) == both


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a", "b", "folder/c", "by hand"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    (tmp_path / "tree" / "link").symlink_to("folder")
    return tmp_path / "tree"


def edit(checkpoints: FileCheckpoints, name: str, text: str) -> None:
    checkpoints.begin(SESSION, 1, names=[name])
    (checkpoints.root / name).parent.mkdir(exist_ok=True)
    (checkpoints.root / name).write_text(text)
    checkpoints.end()


def rewind(checkpoints: FileCheckpoints) -> dict[str, str]:
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    _, result, _ = checkpoints.restore(SESSION, 9, plan, "files")
    return {skipped.path: skipped.why for skipped in result.skipped}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen, scan = [], FileDiscoveryService.scan_tree

    def counted(self: FileDiscoveryService, root: str, *more: Any) -> Any:
        seen.append(root)
        return scan(self, root, *more)

    monkeypatch.setattr(FileDiscoveryService, "scan_tree", counted)
    return seen


def test_files_that_are_edited_by_name_take_one_look_a_turn(tmp_path: Path, tree: Path, looks: list[str]) -> None:
    checkpoints = make_checkpoints(tmp_path)
    edit(checkpoints, "a", "new")
    edit(checkpoints, "link/c", "new")
    edit(checkpoints, str(tree / "a"), "newer")
    assert len(looks) == 1

    assert rewind(checkpoints) == {}
    assert {path.read_text() for path in tree.rglob("*") if path.is_file()} == {"old"}


def test_what_a_person_writes_between_or_during_such_calls_is_theirs(tmp_path: Path, tree: Path) -> None:
    checkpoints = make_checkpoints(tmp_path)
    edit(checkpoints, "a", "new")
    (tree / "b").write_text("mine, then edited: ")
    checkpoints.begin(SESSION, 1, names=["b"])
    (tree / "b").write_text("mine, then edited: yes")
    (tree / "by hand").write_text("mine")
    checkpoints.end()

    assert rewind(checkpoints).keys() == {"b", "by hand"}
    assert (tree / "a").read_text() == "old"
    assert (tree / "by hand").read_text() == "mine"


@pytest.mark.parametrize("name", ["new/file", ".gitignore", "joined", "big"])
def test_what_needs_a_whole_look_gets_one(tmp_path: Path, tree: Path, looks: list[str], name: str) -> None:
    if name == "joined":
        os.link(tree / "a", tree / "joined")
    if name == "big":
        (tree / "big").write_text("small")
    checkpoints = make_checkpoints(tmp_path, max_file_bytes=100)
    edit(checkpoints, "b", "new")
    edit(checkpoints, name, "*.log\n" if name == ".gitignore" else "x" * 200 if name == "big" else "new")

    assert len(looks) > 1
    assert rewind(checkpoints).keys() == ({"big"} if name == "big" else set())
    assert (tree / "a").read_text() == "old"
    assert not (tree / "new").exists()


def test_what_an_editor_did_not_save_is_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    checkpoints = make_checkpoints(tmp_path)
    place = checkpoints.root.resolve() / "a"
    place.write_bytes(b"disk")
    checkpoints.note_editor_change(place, b"no", b"stretch is open")
    checkpoints.begin(SESSION, 1)
    checkpoints.note_editor_change(place, b"before", b"after")
    checkpoints.note_editor_change(tmp_path / "elsewhere", b"x", b"y")
    record = checkpoints.end()

    assert record is not None
    with checkpoints.objects.hold_lock():
        collect_garbage(checkpoints.objects)
    (change,) = checkpoints.view_files().list_changes(checkpoints.list_records(SESSION)[0])
    assert change.before is not None
    assert change.after is not None
    assert checkpoints.read_entry(change.path, change.before) == b"before"
    assert checkpoints.read_entry(change.path, change.after) == b"after"


def cut_off_turn(place: Path, command: str) -> None:
    """A turn in a process of its own, which is killed after its command."""
    process = os.fork()
    if process == 0:
        checkpoints = make_checkpoints(place)
        checkpoints.begin(SESSION, 1)
        os.chdir(place / "tree")
        os.system(command)
        os._exit(1)
    os.waitpid(process, 0)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("ours", "both", "by hand", "d/gone", "d/kept", "moved/x"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    return tmp_path


def rewind_interrupted(place: Path) -> dict[str, str]:
    checkpoints = make_checkpoints(place)
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    _, result, _ = checkpoints.restore(SESSION, 9, plan, "files")
    return {skipped.path: skipped.why for skipped in result.skipped}


def test_nothing_goes_back_unasked_after_a_kill(place: Path) -> None:
    tree = place / "tree"
    cut_off_turn(place, "echo model > ours; rm d/gone")
    (tree / "by hand").write_text("by hand")

    skipped = rewind_interrupted(place)

    assert (tree / "ours").read_text() == "model\n"
    assert skipped == dict.fromkeys(("ours", "by hand", "d/gone"), CHANGED_SINCE_CUT_OFF)


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
