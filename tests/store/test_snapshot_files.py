"""Snapshots and objects of files on disk."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

import ollm.store.file_objects as module
from ollm.domain.errors import BusyError, DamagedError, NotFoundError, StorageError
from ollm.domain.session import ContextSnapshot, SnapshotMetadata
from ollm.store.file_objects import FileObjects
from ollm.store.snapshot_files import INDEX, MAP, SnapshotFiles, make_summary


def snapshot(
    name: str, session_id: str = "s1", timestamp: str = "2026-01-01T00:00:00.000Z", **more: Any
) -> ContextSnapshot:
    fields: dict[str, Any] = {
        "token_count": 5,
        "summary": f"about {name}",
        "user_messages": ({"id": 1, "content": "hi"},),
        "messages": ({"role": "user", "content": "ä"},),
        "metadata": SnapshotMetadata(model="m", context_size=10, compression_ratio=0.5, total_user_messages=1),
        **more,
    }
    return ContextSnapshot(id=name, session_id=session_id, timestamp=timestamp, **fields)


def save(files: SnapshotFiles, taken: ContextSnapshot) -> None:
    files.write(taken)
    files.register(taken)


@pytest.fixture
def files(tmp_path: Path) -> SnapshotFiles:
    return SnapshotFiles(tmp_path)


def place(root: Path, name: str, session_id: str = "s1") -> Path:
    return root / session_id / "snapshots" / f"snapshot-{name}.json"


def test_what_was_saved_is_loaded_and_private(files: SnapshotFiles, tmp_path: Path) -> None:
    taken = snapshot("a", trigger="mode")
    save(files, taken)

    assert files.load("a") == taken
    assert json.loads((tmp_path / MAP).read_text()) == {"a": "s1"}
    assert place(tmp_path, "a").stat().st_mode & 0o777 == 0o600
    assert place(tmp_path, "a").parent.stat().st_mode & 0o777 == 0o700


def test_lists_are_newest_first_and_the_later_of_one_moment_is_first(files: SnapshotFiles) -> None:
    save(files, snapshot("old", timestamp="2025"))
    save(files, snapshot("one", timestamp="2026"))
    save(files, snapshot("two", timestamp="2026"))
    save(files, snapshot("other", session_id="s2"))

    assert [entry.id for entry in files.list_summaries("s1")] == ["two", "one", "old"]
    assert files.list_summaries("s2") == [make_summary(snapshot("other", session_id="s2"))]
    assert files.list_summaries("s3") == []


def test_deleted_it_is_gone_from_file_index_and_map(files: SnapshotFiles, tmp_path: Path) -> None:
    save(files, snapshot("a"))
    save(files, snapshot("b"))

    assert files.delete("a") == "s1"
    assert [entry.id for entry in files.list_summaries("s1")] == ["b"]
    assert json.loads((tmp_path / MAP).read_text()) == {"b": "s1"}
    assert not place(tmp_path, "a").exists()
    with pytest.raises(NotFoundError) as caught:
        files.delete("a")
    assert (caught.value.message, caught.value.action) == ("No snapshot a.", "List them with `ollm snapshots list`.")


@pytest.mark.parametrize("wrong", ["nonsense", '{"a":"../s1"}', '{"a":"s2"}'])
def test_a_wrong_map_misleads_nobody(files: SnapshotFiles, tmp_path: Path, wrong: str) -> None:
    save(files, snapshot("a"))
    (tmp_path / MAP).write_text(wrong)

    assert files.find_session("a") == "s1"
    save(files, snapshot("b"))
    assert json.loads((tmp_path / MAP).read_text()) == {"a": "s1", "b": "s1"}


@pytest.mark.parametrize("wrong", [None, "nonsense", "[]", "{}"])
def test_a_wrong_index_is_worked_out_again(files: SnapshotFiles, tmp_path: Path, wrong: str | None) -> None:
    save(files, snapshot("b", timestamp="2026"))
    save(files, snapshot("a", timestamp="2025"))
    index = place(tmp_path, "a").with_name(INDEX)
    index.unlink()
    if wrong is not None:
        index.write_text(wrong)

    assert [entry.id for entry in files.list_summaries("s1")] == ["b", "a"]
    assert [entry["id"] for entry in json.loads(index.read_text())] == ["a", "b"]


def test_a_broken_snapshot_is_listed_as_such_and_can_be_deleted(files: SnapshotFiles, tmp_path: Path) -> None:
    save(files, snapshot("good"))
    place(tmp_path, "bad").write_text("{")

    good, bad = files.list_summaries("s1")
    assert (good.id, bad.id, bad.timestamp, bad.token_count) == ("good", "bad", "", 0)
    assert (
        bad.summary
        == f"unusable: The snapshot {place(tmp_path, 'bad')} is broken: not a JSON object. Delete it; the session is not affected."
    )
    files.delete("bad")
    assert [entry.id for entry in files.list_summaries("s1")] == ["good"]


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        ("{", DamagedError, "is broken: not a JSON object."),
        ("[" * 100_000, DamagedError, "is broken: not a JSON object."),
        ("[]", DamagedError, "is broken: not a JSON object."),
        ('{"schemaVersion":2}', StorageError, "was written by a newer ollm."),
        ('{"version":2}', StorageError, "was written by a newer ollm."),
        ('{"sessionId":"s2"}', StorageError, "belongs to another session, 's2'."),
        ('{"sessionId":"s1"}', DamagedError, "is broken: Object missing required field `timestamp`."),
        (
            '{"sessionId":"s1","timestamp":"t","messages":[1]}',
            DamagedError,
            "is broken: Expected `object`, got `int` - at `$.messages[0]`.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(
    files: SnapshotFiles, tmp_path: Path, content: str, kind: type[StorageError], reason: str
) -> None:
    place(tmp_path, "a").parent.mkdir(parents=True)
    place(tmp_path, "a").write_text(content)

    with pytest.raises(kind) as caught:
        files.load("a")
    assert caught.value.message == f"The snapshot {place(tmp_path, 'a')} {reason}"
    if kind is DamagedError:
        assert caught.value.action == "Delete it; the session is not affected."


def test_an_older_form_is_filled_up_and_what_has_another_shape_left_out(files: SnapshotFiles, tmp_path: Path) -> None:
    place(tmp_path, "a").parent.mkdir(parents=True)
    old = {
        "version": 1,
        "id": "another",
        "sessionId": "s1",
        "timestamp": "t",
        "userMessages": [{"id": 1}, {"id": 2}],
        "metadata": {"model": 5},
        "goalStack": "none",
        "reasoningStorage": 1,
        "checkpoints": {},
        "archivedUserMessages": [3],
    }
    place(tmp_path, "a").write_text(json.dumps(old))

    found = files.load("a")

    assert (found.id, found.token_count, found.summary, found.messages) == ("a", 0, "", ())
    assert found.metadata == SnapshotMetadata(model="", context_size=0, compression_ratio=1.0, total_user_messages=2)
    assert (found.goal_stack, found.reasoning_storage, found.checkpoints, found.archived_user_messages) == (
        None,
        None,
        (),
        (),
    )


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-a", "a" * 101, "ä", "a\n"])
def test_a_name_never_leads_elsewhere(files: SnapshotFiles, name: str) -> None:
    for what, attempt in (("snapshot", files.load), ("session", files.list_summaries)):
        with pytest.raises(NotFoundError) as caught:
            attempt(name)
        assert caught.value.message == f"{name[:80]!r} is not the id of a {what}."


def test_a_content_is_kept_once_and_comes_back(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    digest = objects.put(b"content")

    assert objects.put(b"content") == digest
    assert objects.read(digest) == b"content"
    assert objects.has(digest)
    assert objects.measure_bytes() == objects.save_growth().bytes == 7
    assert objects.save_growth().bytes == 7


def test_a_damaged_or_missing_content_is_told(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    digest = objects.put(b"content")
    next(tmp_path.glob("objects/*/*")).write_bytes(b"contenT")

    with pytest.raises(StorageError, match="damaged"):
        objects.read(digest)
    with pytest.raises(StorageError, match="gone"):
        objects.read(b"\0" * 32)


def test_only_what_is_named_stays_and_half_written_objects_go(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    kept, gone = objects.put(b"kept"), objects.put(b"gone!")
    (next(tmp_path.glob("objects/*/*")).parent / ".abc.1-2.tmp").touch()

    (tmp_path / ".index.1-ab.tmp").touch()

    state = objects.remove_others({kept})

    assert (state.generation, state.bytes) == (1, 4)
    assert (objects.has(kept), objects.has(gone)) == (True, False)
    assert objects.measure_bytes() == 4
    assert not list(tmp_path.rglob("*.tmp"))


def hold(folder: Path, held: "multiprocessing.synchronize.Event", over: "multiprocessing.synchronize.Event") -> None:
    with FileObjects(folder).hold_lock():
        held.set()
        over.wait(60)


def test_one_writes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_SECONDS", 0.2)
    context = multiprocessing.get_context("fork")
    held, over = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, over))
    other.start()
    assert held.wait(60)

    with pytest.raises(BusyError), FileObjects(tmp_path).hold_lock():
        pass
    over.set()
    other.join()
    with FileObjects(tmp_path).hold_lock():
        pass


def test_what_cannot_be_written_is_told_and_written_later(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    digest = objects.put(b"content")
    place = next(tmp_path.glob("objects/*/*"))
    place.write_bytes(b"cont")

    assert objects.put(b"content") == digest
    assert objects.read(digest) == b"content"
    place.unlink()
    place.parent.rmdir()
    place.parent.write_text("in the way")
    with pytest.raises(StorageError, match="could not be saved"):
        objects.put(b"content")


def test_a_list_of_a_session_goes_with_it(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    objects.append_line("s", b"{}")

    assert objects.list_sessions() == ["s"]
    assert objects.remove_session("s")
    assert not objects.remove_session("s")
    assert objects.read_lines("s") == []


def test_a_state_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    before = objects.put(b"kept before")
    with pytest.raises(StorageError, match="no more"), objects.put_together():
        objects.put(b"kept before")
        objects.put(b"the beginning of a state")
        raise StorageError("no more")

    assert objects.has(before)
    assert objects.measure_bytes() == objects.save_growth().bytes == len(b"kept before")
    with objects.put_together():
        objects.put(b"whole")
    assert objects.measure_bytes() == len(b"kept before") + len(b"whole")


def test_a_disk_that_is_nearly_full_is_left_to_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_FREE_BYTES", 1 << 60)
    with pytest.raises(StorageError, match="are free on the disk"), FileObjects(tmp_path).put_together():
        pytest.fail("nothing is put there")


def test_the_lines_of_a_session_are_kept_in_order_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    for line in (b"one", b"two"):
        objects.append_line("s", line)
    path = objects.sessions / "s.jsonl"

    assert objects.read_lines("s") == [b"one", b"two"]
    assert path.read_bytes() == b"one\ntwo\n"
    path.write_bytes(b"one\ntw")
    assert objects.read_lines("s") == [b"one"]
    objects.append_line("s", b"three")
    assert path.read_bytes() == b"one\ntw\nthree\n"
    objects.replace_lines("s", [b"a", b"b"])
    assert objects.read_lines("s") == [b"a", b"b"]
    objects.append_line("r", b"x")
    assert objects.list_sessions() == ["r", "s"]
    assert objects.find_held_file("s") == objects.sessions / "s.alive"


def test_growth_is_counted_once_and_throwing_away_counts_as_another_generation(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    assert objects.load_state() == module.ObjectsState(generation=0, bytes=0)
    kept = objects.put(b"12345")
    objects.put(b"123")
    assert objects.added_bytes == 8
    assert objects.save_growth() == module.ObjectsState(generation=0, bytes=8)
    assert objects.added_bytes == 0
    assert objects.save_growth() == FileObjects(tmp_path).load_state() == module.ObjectsState(generation=0, bytes=8)
    for generation in (1, 2):
        assert objects.remove_others({kept}) == module.ObjectsState(generation=generation, bytes=5)
    assert FileObjects(tmp_path).load_state() == module.ObjectsState(generation=2, bytes=5)
    objects.put(b"1")
    assert objects.save_growth() == module.ObjectsState(generation=2, bytes=6)
    (tmp_path / "state.json").write_text("nonsense")
    assert objects.load_state() == module.ObjectsState()
