"""What is said of files that go back: long lists are cut, odd names are shown safely."""

from pathlib import Path

from ollm.runtime.rewind import describe_plan, describe_result, describe_scope, render_diffs, to_plain_data
from ollm.services.file_checkpoints import PathChange, RestorePlan, RestoreResult, SkippedPath
from tests.services.file_checkpoints.trees import SESSION, make_checkpoints, take_turn


def plan_many(place: Path, count: int) -> RestorePlan:
    (place / "tree").mkdir()
    checkpoints = make_checkpoints(place)
    with take_turn(checkpoints, 1):
        for number in range(count):
            (place / "tree" / f"{number:02}\x1b[2J").write_text("x")
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    return plan


def test_a_long_list_is_cut_and_no_name_reaches_the_terminal_raw(tmp_path: Path) -> None:
    plan = plan_many(tmp_path, 25)
    text = describe_plan(plan)

    assert text.startswith("25 files would be put back:\n- `D` ")
    assert "… and 5 more" in text
    assert "\x1b" not in text
    assert len(to_plain_data(plan)["files"]) == 25


def test_what_was_left_alone_is_named_with_its_reason() -> None:
    result = RestoreResult(skipped=(SkippedPath(path="a", why="is ignored now"),))

    assert describe_result(result) == "No files were changed.\n\n1 file left alone:\n- a: is ignored now"
    assert to_plain_data(result)["skipped"] == [{"path": "a", "why": "is ignored now"}]


def test_what_a_checkpoint_does_not_cover_is_counted(tmp_path: Path) -> None:
    (tmp_path / "tree" / "node_modules").mkdir(parents=True)
    (tmp_path / "tree" / "large").write_bytes(b"x" * 200)
    checkpoints = make_checkpoints(tmp_path, max_file_bytes=100)

    record = checkpoints.begin(SESSION, 1)

    assert describe_scope(record) == (
        "Not covered: 1 ignored names and 1 files that are too large or no regular files."
    )


def test_a_file_that_is_no_text_is_named_only(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tmp_path / "tree" / "bytes").write_bytes(b"\xff\xfe\xfd")
        (tmp_path / "tree" / "empty").touch()
        (tmp_path / "tree" / "folder").mkdir()

    changes: list[PathChange] = checkpoints.list_changes(checkpoints.list_records(SESSION)[0])

    assert render_diffs(checkpoints, changes) == [
        "--- a/bytes\n+++ b/bytes\n(not text)",
        "--- a/empty\n+++ b/empty\n(created, empty)",
    ]
