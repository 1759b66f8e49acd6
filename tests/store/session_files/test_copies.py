"""Second names for session files that are about to be rewritten."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.store.session_files import copies
from ollm.store.session_files.copies import keep_copies, keep_copy, restore_journal
from ollm.system.atomic import AppendFile

SESSION_ID = "01234567-89ab-4cde-8f01-23456789abcd"


def clock() -> datetime:
    return datetime(2026, 1, 27, 10, 0, 0, 5000, tzinfo=UTC)


def test_a_copy_says_what_it_is_and_when_and_is_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"bytes")

    kept = keep_copy(file, clock, "replaced")

    assert kept == tmp_path / "a.json.replaced-2026-01-27T100000-005Z"
    assert kept.stat().st_ino == file.stat().st_ino


def test_of_copies_in_one_moment_each_gets_a_name_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"bytes")

    names = [keep_copy(file, clock, "damaged").name for _ in range(3)]

    first = "a.json.damaged-2026-01-27T100000-005Z"
    assert names == [first, f"{first}-2", f"{first}-3"]


def test_where_the_disk_has_no_links_the_bytes_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"long " * 10)
    monkeypatch.setattr(copies, "_CHUNK_BYTES", 7)

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    kept = keep_copy(file, clock, "original")

    assert kept.read_bytes() == b"long " * 10
    assert kept.stat().st_ino != file.stat().st_ino


@pytest.mark.parametrize(
    ("there", "kept"),
    [((), []), ((".json",), [".json"]), ((".journal",), [".journal"]), ((".journal", ".json"), [".json", ".journal"])],
)
def test_document_and_journal_are_kept_where_they_exist(
    tmp_path: Path, there: tuple[str, ...], kept: list[str]
) -> None:
    for end in there:
        (tmp_path / f"{SESSION_ID}{end}").write_text(end)
    (tmp_path / f"{SESSION_ID}.lock").write_text("")

    found = keep_copies(tmp_path, SESSION_ID, clock)

    assert [path.name for path in found] == [f"{SESSION_ID}{end}.damaged-2026-01-27T100000-005Z" for end in kept]
    assert [path.read_text() for path in found] == kept


def test_a_directory_in_place_of_a_document_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / f"{SESSION_ID}.json").mkdir()

    assert keep_copies(tmp_path, SESSION_ID, clock, "original") == []


def test_a_directory_that_took_a_files_place_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    (tmp_path / "a.json" / "inside").write_text("kept")

    copy = keep_copy(tmp_path / "a.json", clock, "replaced")

    assert not (tmp_path / "a.json").exists()
    assert (copy / "inside").read_text() == "kept"


@pytest.mark.parametrize("there", [b"", b"other", None])
@pytest.mark.parametrize("written", [b"", b"line\n"])
def test_what_another_program_did_to_a_journal_is_said(tmp_path: Path, written: bytes, there: bytes | None) -> None:
    journal = AppendFile(tmp_path / "a.journal")
    journal.open()
    if written:
        journal.append(written)
    assert restore_journal(journal, clock) == ""
    journal.path.unlink()
    if there is not None:
        journal.path.write_bytes(there)

    told = restore_journal(journal, clock)

    kept = list(tmp_path.glob("a.journal.replaced-*"))
    assert [path.read_bytes() for path in kept] == ([] if there is None else [there])
    assert journal.path.read_bytes() == written
    place = f", and kept as {kept[0].name}" if kept else ""
    said = f"Another program has {'changed' if kept else 'removed'} {journal.path}: it was rewritten{place}."
    assert told == (said if written or kept else "")
    journal.close()
