"""A document that another program removed, replaced or changed is put back, and what took its place kept."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.store.session_files import places
from ollm.store.session_files.places import DocumentGuard

KEPT = "a.json.replaced-2026-01-27T100000-000Z"


@pytest.fixture
def guard(tmp_path: Path) -> DocumentGuard:
    path = tmp_path / "a.json"
    path.write_bytes(b"ours")
    guard = DocumentGuard(path, lambda: datetime(2026, 1, 27, 10, tzinfo=UTC))
    guard.watch()
    return guard


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


def test_a_large_document_is_given_back_from_the_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_HELD_BYTES", 0)
    monkeypatch.setattr(places, "GUARD_CHUNK_BYTES", 3)
    path = tmp_path / "a.json"
    path.write_bytes(b"0123456789")
    guard = DocumentGuard(path, lambda: datetime.now(UTC))
    guard.watch()
    path.unlink()

    assert guard.restore() == f"Another program has removed {path}: it was rewritten."
    assert path.read_bytes() == b"0123456789"


def test_a_document_that_lost_its_name_can_be_read_elsewhere(guard: DocumentGuard, tmp_path: Path) -> None:
    target, content = tmp_path / "target", guard.path.read_bytes()
    assert guard.find_readable(target) == guard.path

    guard.path.unlink()
    assert guard.find_readable(target) == target
    assert target.read_bytes() == content
