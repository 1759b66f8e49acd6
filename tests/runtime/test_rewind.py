"""What is said of files that go back: long lists are cut, odd names are shown safely."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import StorageError
from ollm.runtime.rewind import (
    changes_nothing,
    describe_nothing,
    describe_outcome,
    describe_plan,
    describe_result,
    describe_scope,
    list_skipped,
    render_diff,
    render_diffs,
    show_bytes,
    to_plain_data,
)
from ollm.services.file_checkpoints import PathChange, RestorePlan, RestoreResult, SkippedPath
from ollm.services.file_checkpoints.tree import TreeEntry
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

    with take_turn(checkpoints, 1):
        (tmp_path / "tree" / "a").touch()
    plan = checkpoints.plan_rewind(SESSION, 1)

    assert plan is not None
    assert describe_scope(plan) == (
        "Not covered: 1 ignored name and 1 file too large to save, unreadable or not regular."
    )
    assert describe_scope(plan) in describe_plan(plan)


def test_files_that_stayed_are_not_said_to_be_as_they_were() -> None:
    left, done = SkippedPath(path="a", why="is ignored now"), PathChange("b", TreeEntry("f", 0o644, b""), None)

    assert describe_outcome(3, RestoreResult(restored=(done,))) == "Files are as they were before message 3."
    assert describe_outcome(3, RestoreResult(skipped=(left,))) == "No files went back to before message 3."
    both = RestoreResult(skipped=(left,), restored=(done,))
    assert describe_outcome(3, both) == "Not all files went back to before message 3."


def test_a_directory_that_gives_way_to_a_file_is_counted_once(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("a file")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tmp_path / "tree" / "a").unlink()
        (tmp_path / "tree" / "a").mkdir()
    plan = checkpoints.plan_rewind(SESSION, 1)

    assert plan is not None
    assert describe_plan(plan) == "1 file would be put back:\n- `M` a"


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


def test_a_list_of_twenty_is_shown_whole() -> None:
    twenty = [SkippedPath(path=f"p{number}", why="is ignored now") for number in range(20)]

    assert not any("more" in line for line in list_skipped(twenty))
    assert list_skipped([*twenty, twenty[0]])[-1] == "- … and 1 more"
    assert list_skipped([]) == []
    assert list_skipped(twenty)[:3] == ["", "20 files left alone:", "- p0: is ignored now"]


def test_diffs_stop_when_there_is_more_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "x" * 150_000, "y" * 50_000, "z", "never"]
    monkeypatch.setattr("ollm.runtime.rewind.render_diff", lambda _checkpoints, change: texts[change])
    checkpoints: Any = None

    assert render_diffs(checkpoints, [0, 1, 2]) == texts[1:3]  # type: ignore[list-item]
    assert (
        render_diffs(checkpoints, range(5))
        == [  # type: ignore[arg-type]
            *texts[1:4],
            "(more changes follow; they are too long to show)",
        ]
    )


class Contents:
    """Saved contents by what an entry holds."""

    def read_entry(self, path: str, entry: TreeEntry) -> bytes:
        if entry.value == b"damaged":
            raise StorageError("The saved content is damaged.")
        return entry.value


FILE = TreeEntry("f", 0o644, b"one\n")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (FILE, TreeEntry("f", 0o755, b"one\n"), "--- a/p\n+++ b/p\n(mode 644 → 755)"),
        (
            FILE,
            TreeEntry("f", 0o755, b"two\n"),
            "--- a/p\n+++ b/p\n(mode 644 → 755)\n--- a/p\n+++ b/p\n@@ -1 +1 @@\n-one\n+two",
        ),
        (FILE, TreeEntry("l", 0o777, b"far"), "--- a/p\n+++ b/p\n@@ -1 +1 @@\n-one\n+→ far"),
        (FILE, TreeEntry("d", 0o755, b""), "--- a/p\n+++ b/p\n@@ -1 +0,0 @@\n-one"),
        (FILE, None, "--- a/p\n+++ b/p\n@@ -1 +0,0 @@\n-one"),
        (TreeEntry("f", 0o644, b""), None, "--- a/p\n+++ b/p\n(removed, empty)"),
        (None, TreeEntry("f", 0o644, b""), "--- a/p\n+++ b/p\n(created, empty)"),
        (None, TreeEntry("f", 0o644, b"a\0b"), "--- a/p\n+++ b/p\n(not text)"),
        (TreeEntry("f", 0o644, b"\xff"), FILE, "--- a/p\n+++ b/p\n(not text)"),
        (None, TreeEntry("s", 0o644, b""), "--- a/p\n+++ b/p\n(not text)"),
        (None, TreeEntry("f", 0o644, b"damaged"), "--- a/p\n+++ b/p\n(The saved content is damaged.)"),
        (FILE, TreeEntry("i", 0, b""), ""),
        (TreeEntry("i", 0, b""), FILE, ""),
        (None, TreeEntry("d", 0o755, b""), ""),
    ],
)
def test_how_a_change_of_one_path_is_shown(before: TreeEntry | None, after: TreeEntry | None, shown: str) -> None:
    contents: Any = Contents()

    assert render_diff(contents, PathChange("p", before, after)) == shown


def test_a_rewind_that_would_leave_all_as_it_is_says_why() -> None:
    change = PathChange("b", FILE, None)
    left = SkippedPath(path="a", why="is ignored now")
    plan = RestorePlan(message_id=3, current=b"", target=b"", steps=(change,), skipped=())
    stays = RestorePlan(message_id=3, current=b"", target=b"", steps=(), skipped=(left,))

    assert [changes_nothing(one, talk=talk) for one in (None, plan, stays) for talk in (True, False)] == [
        *(False, True),
        *(False, False),
        *(False, True),
    ]
    skipped = "\n\n1 file left alone:\n- a: is ignored now"
    told = "Nothing was changed: message 3 is out of the context already."
    assert describe_nothing(3, None, files_only=False) == told
    assert describe_nothing(3, stays, files_only=False) == f"{told}{skipped}"
    assert describe_nothing(3, stays, files_only=True) == f"No files went back to before message 3.{skipped}"
    assert describe_nothing(3, None, files_only=True) == (
        "Files are as they were before message 3. No files were changed."
    )
    assert describe_outcome(3, None) == "Files are as they were before message 3."


def test_a_name_that_is_no_text_is_shown_by_its_bytes() -> None:
    assert show_bytes("a\udcffb") == "a\\xffb"
