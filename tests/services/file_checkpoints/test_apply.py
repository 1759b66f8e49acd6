"""Steps on a real tree, each looking at what is there first."""

import os
from itertools import product
from pathlib import Path

import pytest

from ollm.services.file_checkpoints import restore
from ollm.services.file_checkpoints.restore import RestoreSteps, observe_path
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry, order_steps
from ollm.store.file_objects import FileObjects


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    return FileObjects(tmp_path / "saved")


def make_file(objects: FileObjects, text: str, mode: int = 0o644) -> TreeEntry:
    return TreeEntry("f", mode, objects.put(text.encode()))


def test_a_damaged_object_is_named_and_nothing_is_written(tmp_path: Path, objects: FileObjects) -> None:
    old = make_file(objects, "old")
    next(objects.folder.glob("objects/*/*")).write_text("rotten")
    steps = RestoreSteps(tmp_path, objects, [PathChange("a", None, old)], "x")

    result = steps.run()

    assert "damaged" in result.skipped[0].why
    assert not (tmp_path / "a").exists()


def test_a_directory_that_is_not_empty_stays(tmp_path: Path, objects: FileObjects) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("x")
    folder = TreeEntry("d", 0o755, b"")

    steps = RestoreSteps(tmp_path, objects, [PathChange("d", folder, None)], "x")
    result = steps.run()

    assert (tmp_path / "d" / "mine").exists()
    assert result.skipped == ()


def test_kinds_take_each_others_place_and_leftovers_of_a_killed_restore_go(
    tmp_path: Path, objects: FileObjects
) -> None:
    root = tmp_path / "root"
    (root / "was_folder").mkdir(parents=True)
    (root / "was_folder").chmod(0o755)
    (root / "was_file").write_text("text")
    (root / "was_file").chmod(0o644)
    (root / "sub").mkdir()
    (root / "sub" / ".ollm-x.tmp").write_text("half")
    (root / ".ollm-x.tmp").write_text("half")
    text, folder = make_file(objects, "text"), TreeEntry("d", 0o750, b"")
    steps = RestoreSteps(
        root,
        objects,
        [
            PathChange("was_file", text, None),
            PathChange("was_folder", TreeEntry("d", 0o755, b""), text),
            PathChange("was_folder", TreeEntry("d", 0o755, b""), text),
            PathChange("sub/link", None, TreeEntry("l", 0, b"nowhere")),
            PathChange("made", None, folder),
            PathChange("made/inner/a", None, make_file(objects, "deep", 0o600)),
        ],
        "x",
    )

    result = steps.run()

    assert result.skipped == ()
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == [
        *("made", "made/inner", "made/inner/a", "sub", "sub/link", "was_folder")
    ]
    assert (root / "was_folder").read_text() == "text"
    assert (root / "sub" / "link").readlink() == Path("nowhere")
    assert (root / "made").stat().st_mode & 0o777 == 0o750
    assert (root / "made/inner/a").stat().st_mode & 0o777 == 0o600


def test_what_is_no_file_or_behind_a_link_is_left_and_named(tmp_path: Path, objects: FileObjects) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.mkfifo(root / "pipe", 0o600)
    (tmp_path / "outside").mkdir()
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "block").write_text("x")
    text = make_file(objects, "text")

    steps = RestoreSteps(
        root,
        objects,
        [PathChange("pipe", text, None), PathChange("away/a", None, text), PathChange("block/a", None, text)],
        "x",
    )
    result = steps.run()

    assert [(skipped.path, skipped.why) for skipped in result.skipped] == [
        ("pipe", "changed while it was restored"),
        ("away/a", "a directory above it is a link now"),
        ("block/a", "could not be restored: Not a directory"),
    ]
    assert result.restored == ()
    assert observe_path(root, "pipe") == TreeEntry("x", 0o600, b"is not a regular file")
    assert observe_path(root, "block/a") is None
    assert observe_path(root, "gone") is None


def put_there(path: Path, entry: TreeEntry | None, objects: FileObjects) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    if entry is None:
        return
    if entry.kind == "l":
        path.symlink_to(os.fsdecode(entry.value))
        return
    if entry.kind == "d":
        path.mkdir()
    else:
        path.write_bytes(objects.read(entry.value))
    path.chmod(entry.mode)


def list_states(objects: FileObjects) -> list[TreeEntry | None]:
    return [
        None,
        make_file(objects, "one"),
        make_file(objects, "two"),
        make_file(objects, "one", 0o600),
        TreeEntry("l", 0, b"one"),
        TreeEntry("l", 0, b"two"),
        TreeEntry("d", 0o755, b""),
        TreeEntry("d", 0o500, b""),
    ]


def may_be_done(now: TreeEntry | None, before: TreeEntry | None, after: TreeEntry | None) -> bool:
    """By the words of the rule: it is as it was planned, or done already, or half done."""
    if now in (before, after):
        return True
    if now is None or before is None:
        replaced = before is not None and (after is None or (before.kind == "d") != (after.kind == "d"))
        return now is None and replaced
    return now.kind == before.kind == "d"


def test_whatever_is_there_becomes_what_was_there_or_stays_as_it_is(tmp_path: Path, objects: FileObjects) -> None:
    root = tmp_path / "root"
    root.mkdir()
    states = list_states(objects)
    for before, after, now in product(states, states, states):
        if before == after:
            continue
        put_there(root / "p", now, objects)
        steps = RestoreSteps(root, objects, order_steps([PathChange("p", before, after)]), "x")

        result = steps.run()

        told = (before, after, now)
        if may_be_done(now, before, after):
            assert observe_path(root, "p") == after, told
            assert ({step.path for step in result.restored}, result.skipped) == ({"p"}, ()), told
        else:
            assert observe_path(root, "p") == now, told
            assert [skipped.why for skipped in result.skipped] == ["changed while it was restored"], told
            assert result.restored == (), told
        assert [path.name for path in root.iterdir()] in ([], ["p"]), told


def test_a_restore_that_fails_in_the_middle_leaves_neither_a_temporary_file_nor_a_changed_one(
    tmp_path: Path, objects: FileObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("new")
    (tree / "a").chmod(0o644)
    change = PathChange("a", make_file(objects, "new"), make_file(objects, "old"))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restore.os, "rename", refuse)
    steps = RestoreSteps(tree, objects, [change], "x")
    result = steps.run()
    monkeypatch.undo()

    assert [(one.path, one.why) for one in result.skipped] == [("a", "could not be restored: No space left on device")]
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"a": "new"}
