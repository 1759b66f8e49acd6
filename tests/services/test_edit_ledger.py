"""What the model knows of files, and copies to undo its edits."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.errors import BusyError, StorageError
from ollm.runtime.commands.work import take_back_edit
from ollm.services.edit_ledger import MAX_UNDO_COPIES, EditLedger
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def ledger(tmp_path: Path) -> EditLedger:
    return EditLedger(lambda: tmp_path / "undo")


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def edit(ledger: EditLedger, path: Path, after: bytes | None) -> None:
    before = path.read_bytes() if path.exists() else None
    ledger.save_undo_copy(path, before, after or b"")
    write(path, after or b"")


def undo(ledger: EditLedger, work: Path) -> tuple[Path, bool] | None:
    """The file, and whether it was removed."""
    taken = asyncio.run(take_back_edit(ledger, ToolContext(boundary=Boundary.around(work)), "undo"))
    return taken and (taken[0].path, taken[0].before is None)


def peek(ledger: EditLedger) -> tuple[Path, bytes | None]:
    found = ledger.find_last_edit()
    assert found is not None
    return found.path, found.before


def test_edits_are_taken_back_newest_first_and_a_new_file_is_removed(ledger: EditLedger, work: Path) -> None:
    file = work / "a"
    edit(ledger, file, b"one")
    edit(ledger, file, b"two\x00\n\n")
    edit(ledger, file, b"")
    assert peek(ledger) == (file, b"two\x00\n\n")

    assert undo(ledger, work) == (file, False)
    assert file.read_bytes() == b"two\x00\n\n"
    assert undo(ledger, work) == (file, False)
    assert peek(ledger) == (file, None)
    assert undo(ledger, work) == (file, True)
    assert not file.exists()
    assert undo(ledger, work) is None
    assert ledger.find_last_edit() is None


def test_what_others_changed_since_is_left_alone_and_can_be_tried_again(ledger: EditLedger, work: Path) -> None:
    file = work / "a"
    write(file, b"one")
    edit(ledger, file, b"two")
    write(file, b"by hand")

    with pytest.raises(BusyError, match="has changed since the edit; not undone"):
        undo(ledger, work)
    assert file.read_bytes() == b"by hand"
    write(file, b"two")
    assert undo(ledger, work) is not None
    assert file.read_bytes() == b"one"


def test_an_edit_that_is_undone_already_is_passed_over(ledger: EditLedger, work: Path) -> None:
    first, second = work / "a", work / "b"
    write(first, b"one")
    write(second, b"one")
    edit(ledger, first, b"two")
    ledger.save_undo_copy(second, b"one", b"never written")
    ledger.save_undo_copy(work / "c", None, b"never written")

    assert undo(ledger, work) == (first, False)
    assert undo(ledger, work) is None


def test_a_file_that_was_removed_since_comes_back(ledger: EditLedger, work: Path) -> None:
    file = work / "a"
    write(file, b"one")
    edit(ledger, file, b"two")
    file.unlink()

    assert undo(ledger, work) == (file, False)
    assert file.read_bytes() == b"one"


def test_only_so_many_copies_are_kept_and_numbers_go_on(ledger: EditLedger, work: Path, tmp_path: Path) -> None:
    for number in range(MAX_UNDO_COPIES + 3):
        copy = ledger.save_undo_copy(work / "a", str(number).encode(), b"x")

    kept = sorted((tmp_path / "undo").iterdir())
    assert len(kept) == MAX_UNDO_COPIES
    assert kept[-1] == copy
    assert (kept[0].name, kept[-1].name) == ("00000004.undo", f"{MAX_UNDO_COPIES + 3:08d}.undo")
    assert kept[0].stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "undo").stat().st_mode & 0o777 == 0o700


def test_a_damaged_copy_is_named(ledger: EditLedger, work: Path) -> None:
    copy = ledger.save_undo_copy(work / "a", b"x", b"y")
    assert copy is not None
    copy.write_bytes(b"{nonsense")

    with pytest.raises(StorageError, match=f"The undo copy {copy} is damaged"):
        undo(ledger, work)


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=6), st.none() | st.binary(max_size=20))
def test_undoing_everything_brings_back_the_beginning(edits: list[bytes], before: bytes | None) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger, file = EditLedger(lambda: Path(folder) / "undo"), Path(folder) / "a"
        if before is not None:
            write(file, before)
        for content in edits:
            edit(ledger, file, content)
        while undo(ledger, Path(folder)):
            pass
        assert (file.read_bytes() if file.exists() else None) == before
