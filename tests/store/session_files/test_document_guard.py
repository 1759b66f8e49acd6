"""A document that another program removed, replaced or changed is put back, and what took its place kept."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.store.session_files import document_guard
from ollm.store.session_files.document_guard import DocumentGuard
from tests.open_files import count_open_files

KEPT = "a.json.replaced-2026-01-27T100000-000Z"


@pytest.fixture
def guard(tmp_path: Path) -> DocumentGuard:
    path = tmp_path / "a.json"
    path.write_bytes(b"ours")
    guard = DocumentGuard(path, lambda: datetime(2026, 1, 27, 10, tzinfo=UTC))
    guard.watch()
    return guard


def names(guard: DocumentGuard) -> list[str]:
    return sorted(path.name for path in guard.path.parent.iterdir())


def test_a_document_nobody_touched_is_in_place(guard: DocumentGuard) -> None:
    assert guard.is_in_place()
    assert guard.restore() == ""
    assert names(guard) == ["a.json"]


def test_none_is_watched_before_there_is_one(tmp_path: Path) -> None:
    guard = DocumentGuard(tmp_path / "none.json", lambda: datetime.now(UTC))
    guard.watch()

    assert guard.is_in_place()
    assert guard.restore() == ""
    assert list(tmp_path.iterdir()) == []


def test_a_removed_document_is_written_anew(guard: DocumentGuard) -> None:
    guard.path.unlink()

    assert not guard.is_in_place()
    assert guard.restore() == f"Another program has removed {guard.path}: it was rewritten."
    assert guard.path.read_bytes() == b"ours"
    assert guard.is_in_place()


def test_a_replaced_document_is_written_anew_and_the_other_kept(guard: DocumentGuard) -> None:
    other = guard.path.with_name("other")
    other.write_bytes(b"theirs")
    other.replace(guard.path)

    assert not guard.is_in_place()
    assert (
        guard.restore() == f"Another program has changed {guard.path}: it was rewritten, and the other kept as {KEPT}."
    )
    assert guard.path.read_bytes() == b"ours"
    assert guard.path.with_name(KEPT).read_bytes() == b"theirs"
    assert guard.is_in_place()


def test_a_small_document_that_was_written_into_comes_from_memory(guard: DocumentGuard) -> None:
    with guard.path.open("r+b") as file:
        file.write(b"theirs, and longer")

    assert not guard.is_in_place()
    assert (
        guard.restore() == f"Another program has changed {guard.path}: it was rewritten, and the other kept as {KEPT}."
    )
    assert guard.path.read_bytes() == b"ours"
    assert guard.path.with_name(KEPT).read_bytes() == b"theirs, and longer"


@pytest.mark.parametrize(("size", "restored"), [(10, True), (11, False)])
def test_up_to_a_size_the_document_is_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, restored: bool
) -> None:
    monkeypatch.setattr(document_guard, "MAX_HELD_BYTES", 10)
    path = tmp_path / "a.json"
    path.write_bytes(b"o" * size)
    guard = DocumentGuard(path, lambda: datetime(2026, 1, 27, 10, tzinfo=UTC))
    guard.watch()
    with path.open("r+b") as file:
        file.write(b"x")
    os.utime(path, ns=(1, 1))

    report = guard.restore()

    if restored:
        assert path.read_bytes() == b"o" * size
    else:
        assert report == f"Another program has changed {path}; what it wrote is also in {KEPT}."
        assert path.read_bytes() == b"x" + b"o" * (size - 1)
    assert path.with_name(KEPT).read_bytes() == b"x" + b"o" * (size - 1)
    assert guard.is_in_place()


def test_a_large_document_is_given_back_from_the_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_guard, "MAX_HELD_BYTES", 0)
    monkeypatch.setattr(document_guard, "_CHUNK_BYTES", 3)
    path = tmp_path / "a.json"
    path.write_bytes(b"0123456789")
    guard = DocumentGuard(path, lambda: datetime.now(UTC))
    guard.watch()
    path.unlink()

    assert guard.restore() == f"Another program has removed {path}: it was rewritten."
    assert path.read_bytes() == b"0123456789"


def test_a_link_is_not_watched(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    path = tmp_path / "a.json"
    path.symlink_to("real")
    guard = DocumentGuard(path, lambda: datetime.now(UTC))
    guard.watch()
    (tmp_path / "real").write_bytes(b"changed")

    assert guard.is_in_place()


def test_what_was_written_by_us_is_seen_after_watching_again(guard: DocumentGuard) -> None:
    guard.path.write_bytes(b"ours, newer")
    guard.watch()

    assert guard.is_in_place()
    guard.path.unlink()
    guard.restore()
    assert guard.path.read_bytes() == b"ours, newer"


def test_closed_it_watches_nothing_and_holds_no_file_open(guard: DocumentGuard) -> None:
    before = count_open_files()
    guard.close()
    guard.close()
    guard.path.unlink()

    assert guard.is_in_place()
    assert count_open_files() == before - 1


def test_a_document_that_lost_its_name_can_be_read_elsewhere(guard: DocumentGuard, tmp_path: Path) -> None:
    target, content = tmp_path / "target", guard.path.read_bytes()
    assert guard.find_readable(target) == guard.path

    guard.path.unlink()
    assert guard.find_readable(target) == target
    assert target.read_bytes() == content
