"""Looking at files and checkpoints: the answer is that of a restore, and nothing is written."""

from pathlib import Path

from msgspec.structs import replace

from tests.services.file_checkpoints.trees import OTHER, SESSION, make_checkpoints, take_turn


def list_files(place: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in place.rglob("*")
    }


def test_a_plan_writes_nothing_and_an_open_turn_is_shown(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("old")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "a").write_text("new")
    (tree / "by hand").write_text("mine")
    before = list_files(tmp_path)

    plan = checkpoints.plan_rewind(SESSION, 1)

    assert list_files(tmp_path) == before
    assert plan is not None
    assert ([step.path for step in plan.steps], [one.path for one in plan.skipped]) == (["a"], ["by hand"])
    checkpoints.begin(OTHER, 1)
    (tree / "a").write_text("newer")
    view = checkpoints.view_files()
    (record,) = view.list_records(OTHER)
    (change,) = view.list_changes(record)
    checkpoints.end()
    assert record.end == ""
    assert change.before
    assert change.after
    assert checkpoints.read_entry("a", change.before) == b"new"
    assert checkpoints.read_entry("a", change.after) == b"newer"


def test_directories_that_others_made_or_removed_stay_so(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("gone", "needed"):
        (tree / name).mkdir(parents=True)
        (tree / name / "x").write_text("old")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "needed" / "x").unlink()
    for name in ("gone", "needed"):
        (tree / name / "x").unlink(missing_ok=True)
        (tree / name).rmdir()
    (tree / "empty").mkdir()

    plan = checkpoints.plan_rewind(SESSION, 1)

    assert plan is not None
    assert [step.path for step in plan.steps] == ["needed", "needed/x"]


def test_of_an_open_record_that_names_files_only_those_are_its_changes(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "a").write_text("a")
        (tree / "b").write_text("b")
    (record,) = checkpoints.list_records(SESSION)
    view = checkpoints.view_files()

    def list_paths(**changes: object) -> list[str]:
        return [change.path for change in view.list_changes(replace(record, **changes))]

    assert list_paths() == list_paths(end="") == list_paths(named=("b",)) == ["a", "b"]
    assert list_paths(end="", named=("b",)) == ["b"]
    assert list_paths(kind="missed", begin="", end="") == []
    assert checkpoints.list_changes(replace(record, end="")) == []
    assert [change.path for change in checkpoints.list_changes(record)] == ["a", "b"]
