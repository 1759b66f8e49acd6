"""Contents under their digests: kept once, checked when read, one writer at a time."""

import multiprocessing
from pathlib import Path

import pytest

import ollm.store.file_objects as module
from ollm.domain.errors import BusyError, StorageError
from ollm.store.file_objects import FileObjects


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
    next(objects._iter_files()).write_bytes(b"contenT")

    with pytest.raises(StorageError, match="damaged"):
        objects.read(digest)
    with pytest.raises(StorageError, match="gone"):
        objects.read(b"\0" * 32)


def test_only_what_is_named_stays_and_half_written_objects_go(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    kept, gone = objects.put(b"kept"), objects.put(b"gone!")
    (next(objects._iter_files()).parent / ".abc.1-2.tmp").touch()

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
    place = next(objects._iter_files())
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
    assert objects.find_beat("s") == objects.sessions / "s.alive"


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
