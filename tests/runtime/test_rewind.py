"""Files that go back: what is said of them, and where an editor has them open."""

from pathlib import Path

import pytest

from ollm.runtime.rewind import (
    describe_outcome,
    describe_plan,
    describe_result,
    describe_scope,
    render_diffs,
    to_plain_data,
)
from ollm.services.file_checkpoints.restore import RestoreResult
from ollm.services.file_checkpoints.tree import PathChange, RestorePlan, SkippedPath, TreeEntry
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.servers.answers import Answer
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

    assert text.startswith("25 files would change back:\n- `D` ")
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
        "Not covered: 1 ignored file or folder and 1 file too large to save, unreadable or not regular."
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
    assert describe_plan(plan) == "1 file would change back:\n- `M` a"


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


RUN = Answer(calls=[("shell", {"command": "echo made > b.txt; echo more >> c.txt"})])


@pytest.mark.parametrize("saves", [True, False])
async def test_files_go_back_and_forth_in_the_editor_and_on_disk(tmp_path: Path, saves: bool) -> None:
    file = prepare_file(tmp_path)
    other = file.with_name("c.txt")
    other.write_text("some\n")
    async with editing(tmp_path, [EDIT, RUN, "Done."], "once", FILES) as (editor, _):
        shown = editor.client.buffers
        shown[str(file)], shown[str(other)], editor.client.saves = "unsaved\ntwo\n", "some\n", saves
        session = await editor.open()
        await editor.say(session, "change it")
        await editor.say(session, "/diff")
        await editor.say(session, "/rewind 1 files diff")
        assert editor.client.said().count("-three\n+two") == 1
        await editor.say(session, "/rewind 1 files yes")
        assert shown[str(file)] == "unsaved\ntwo\n"
        assert file.read_text() == ("unsaved\ntwo\n" if saves else "one\ntwo\n")
        assert "Files are as they were" in editor.client.said()
        await editor.say(session, "/redo")

    assert shown[str(file)] == "unsaved\nthree\n"
    assert file.with_name("b.txt").read_text() == "made\n"
    assert "+three" in editor.client.said()  # /diff knows what is not saved


async def test_what_was_typed_since_is_named_and_left_alone(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    other = file.with_name("c.txt")
    other.write_text("some\n")
    async with editing(tmp_path, [EDIT, RUN, "Done."], "once", FILES) as (editor, _):
        shown = editor.client.buffers
        shown[str(file)] = "one\ntwo\n"
        session = await editor.open()
        await editor.say(session, "change it")
        shown[str(file)] += "typed\n"
        shown[str(other)] = "typed too\n"
        await editor.say(session, "/rewind 1 files yes")

    said = editor.client.said()
    assert "Not all files went back" in said
    assert "a.txt: changed in the editor since" in said
    assert "c.txt: has changes in the editor that are not saved" in said
    assert (shown[str(file)], shown[str(other)]) == ("one\nthree\ntyped\n", "typed too\n")
    assert (file.read_text(), other.read_text()) == ("one\nthree\n", "some\nmore\n")
    assert not file.with_name("b.txt").exists()


async def test_an_editor_that_no_longer_gives_the_file_or_refuses_it_is_told(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = "unsaved\ntwo\n", False
        session = await editor.open()
        await editor.say(session, "change it")
        kept = editor.client.buffers.pop(str(file))
        await editor.say(session, "/rewind 1 files yes")
        assert "a.txt: was changed in the editor, which does not give it now" in editor.client.said()
        editor.client.buffers[str(file)], editor.client.refuses = kept, True
        await editor.say(session, "/rewind 1 files yes")

    assert "a.txt: The editor did not write a.txt" in editor.client.said()
    assert "Files are as they were" not in editor.client.said()
    assert file.read_text() == "one\ntwo\n"
