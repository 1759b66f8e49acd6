"""`/rewind` and `/redo` where an editor has files open: what was changed there goes back there, or is named."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import OllmError
from ollm.runtime.editor_rewind import EditorRewind, hash_content
from ollm.services.file_checkpoints import PathChange, RestorePlan, SkippedPath
from ollm.services.file_checkpoints.editor_changes import CHANGED_IN_EDITOR, NOT_SHOWN, NOT_WRITABLE, UNSAVED
from ollm.services.file_checkpoints.records import EditorChange
from ollm.services.file_checkpoints.tree import TreeEntry
from tests.acp.editor import EDIT, editing
from tests.acp.test_client_files import FILES, prepare_file
from tests.servers.answers import Answer

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


class Scene:
    """A file on disk, what the editor shows of it, and a plan for going back."""

    def __init__(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, shown: dict[str, bytes], writes: bool = True
    ) -> None:
        self.root, self.shown, self.writes = place, shown, writes
        self.put: list[bytes] = []
        self.written: dict[str, bytes] = {}
        objects = SimpleNamespace(put=self.put.append, read=lambda digest: b"content of " + digest[:1])
        self.rewind = EditorRewind.__new__(EditorRewind)
        self.rewind._checkpoints = SimpleNamespace(root=place, objects=objects)  # type: ignore[assignment]
        self.editor: Any = SimpleNamespace(writes=writes)
        self.asked: list[list[str]] = []
        monkeypatch.setattr(self.rewind, "_load", self.load)
        monkeypatch.setattr("ollm.runtime.editor_rewind.write_buffer", self.write)
        self.failure: OllmError | None = None

    async def load(self, paths: Iterable[str]) -> Any:
        self.asked.append(list(paths))
        buffers = {(self.root / path).resolve(): content for path, content in self.shown.items()}
        return SimpleNamespace(
            buffers=buffers, editor=self.editor, open_file=lambda given: BytesIO(buffers[Path(given)])
        )

    async def write(self, _context: object, place: Path, content: bytes) -> bool:
        if self.failure:
            raise self.failure
        self.written[place.name] = content
        return self.writes

    async def revise(self, plan: RestorePlan | None, *changes: EditorChange, force: bool = False) -> Any:
        found = await self.rewind.revise_plan(plan, {one.path: one for one in changes}, 3, force=force)
        if found is None:
            return None
        steps = [(one.path, one.path in found.in_editor) for one in found.steps]
        return steps, [(one.path, one.why) for one in found.skipped]


CHANGE = EditorChange(path="a", before=hash_content(b"old"), after=hash_content(b"new"))
NO_PLAN = None


def make_plan(*steps: PathChange, skipped: tuple[SkippedPath, ...] = ()) -> RestorePlan:
    return RestorePlan(message_id=3, current=b"", target=b"", steps=steps, skipped=skipped)


def make_step(path: str, after: bytes | None) -> PathChange:
    digest = bytes.fromhex(hash_content(after)) if after is not None else b""
    return PathChange(
        path, TreeEntry("f", 0o644, b"\1" * 32), TreeEntry("f", 0o644, digest) if after is not None else None
    )


@pytest.mark.parametrize(
    ("shown", "force", "writes", "found"),
    [
        (b"new", False, True, ([("a", True)], [])),
        (b"old", False, True, ([], [])),
        (b"old", True, False, ([], [])),
        (b"typed", False, True, ([], [("a", CHANGED_IN_EDITOR)])),
        (b"typed", True, True, ([("a", True)], [])),
        (b"new", False, False, ([], [("a", NOT_WRITABLE)])),
        (b"new", True, True, ([("a", True)], [])),
        (None, False, True, ([("a", False)], [])),
    ],
)
async def test_a_file_that_was_changed_in_the_editor_goes_back_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: bytes | None, force: bool, writes: bool, found: object
) -> None:
    scene = Scene(tmp_path, monkeypatch, {} if shown is None else {"a": shown}, writes)

    assert await scene.revise(make_plan(make_step("a", b"old")), CHANGE, force=force) == found
    assert scene.put == ([shown] if found == ([("a", True)], []) else [])
    assert scene.asked == [["a"]]
    scene.editor = None
    if shown == b"new":
        assert await scene.revise(make_plan(), CHANGE) == ([], [("a", NOT_WRITABLE)])


@pytest.mark.parametrize(
    ("plan", "saved", "found"),
    [
        (NO_PLAN, b"old", None),
        (NO_PLAN, b"new", ([], [("a", NOT_SHOWN)])),
        (NO_PLAN, None, ([], [("a", NOT_SHOWN)])),
        (make_plan(), b"old", ([], [])),
        (make_plan(skipped=(SkippedPath(path="a", why="is ignored now"),)), b"new", ([], [("a", "is ignored now")])),
        (make_plan(make_step("a", b"old")), b"new", ([("a", False)], [])),
    ],
)
async def test_of_one_that_the_editor_does_not_give_the_disk_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: RestorePlan | None, saved: bytes | None, found: object
) -> None:
    if saved is not None:
        (tmp_path / "a").write_bytes(saved)

    assert await Scene(tmp_path, monkeypatch, {}).revise(plan, CHANGE) == found


async def test_a_plan_is_made_for_what_is_shown_only_and_one_that_was_made_before_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch, {"a": b"new"})

    assert await scene.revise(None, CHANGE) == ([("a", True)], [])
    assert await scene.revise(None) is None
    assert await scene.revise(make_plan()) == ([], [])


async def test_other_files_stay_where_the_editor_shows_something_that_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch, {"b": b"typed", "c": b"then", "d": b"any"})
    plan = make_plan(make_step("b", b"then"), make_step("c", b"then"), make_step("d", None), make_step("e", b"x"))

    assert await scene.revise(plan) == ([("c", False), ("e", False)], [("b", UNSAVED), ("d", UNSAVED)])


async def test_a_step_is_done_in_the_editor_or_it_is_said_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(path: str, before: bytes) -> PathChange:
        first, then = (TreeEntry("f", 0o644, bytes.fromhex(hash_content(one))) for one in (before, b"old"))
        return PathChange(path, first, then)

    scene = Scene(tmp_path, monkeypatch, {"a": b"new", "b": b"typed"})
    done = await scene.rewind._write_all([make("a", b"new"), make("b", b"new"), make("c", b"new")])
    scene.writes = False
    refused = await scene.rewind._write_all([make("a", b"new")])
    scene.failure = OllmError("The editor did not write a.")
    failed = await scene.rewind._write_all([make("a", b"new")])

    assert [one.path for one in done.restored] == ["a"]
    assert [(one.path, one.why) for one in done.skipped] == [("b", CHANGED_IN_EDITOR), ("c", NOT_SHOWN)]
    assert scene.written == {"a": b"content of " + bytes.fromhex(hash_content(b"old"))[:1]}
    assert ([one.why for one in refused.skipped], refused.restored) == ([NOT_WRITABLE], ())
    assert ([one.why for one in failed.skipped], failed.restored) == (["The editor did not write a."], ())
