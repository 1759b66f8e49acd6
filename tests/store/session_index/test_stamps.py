"""What the file system says of every session, so that only changed ones are read."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import StorageError
from ollm.store.session_index import stamps
from ollm.store.session_index.stamps import BATCH_BYTES, LARGE_BYTES, Stamp, make_batches, read_stamp, read_stamps

ONE = "aaaa0000-0000-4000-8000-000000000001"
TWO = "bbbb0000-0000-4000-8000-000000000002"
HERE = Path("/x/sessions")


def sized(document: int, journal: int | None = None) -> Stamp:
    return Stamp(HERE, (1, document, 5), None if journal is None else (2, journal, 7))


def test_a_stamp_as_text_names_directory_inodes_sizes_and_times() -> None:
    assert Stamp(HERE, (1, 2, 3), (4, 5, 6)).text == "sessions/1,2,3|4,5,6"
    assert Stamp(HERE, None, (4, 5, 6)).text == "sessions/-|4,5,6"
    assert Stamp(HERE, (1, 2, 3), None).text == "sessions/1,2,3|-"
    assert Stamp(HERE, (1, 2, 3), None).document_text == "sessions/1,2,3"


@pytest.mark.parametrize(
    ("stamp", "size", "journal_size", "inode", "newest"),
    [
        (Stamp(HERE, (1, 20, 3), (4, 5, 6)), 25, 5, 4, 6),
        (Stamp(HERE, (1, 20, 9), None), 20, 0, 0, 9),
        (Stamp(HERE, None, (4, 5, 6)), 5, 5, 4, 6),
        (Stamp(HERE, None, None), 0, 0, 0, 0),
    ],
)
def test_sizes_and_times_of_both_files(stamp: Stamp, size: int, journal_size: int, inode: int, newest: int) -> None:
    assert (stamp.size, stamp.journal_size, stamp.journal_inode, stamp.newest_time) == (
        size,
        journal_size,
        inode,
        newest,
    )


def test_from_a_size_on_a_session_is_large() -> None:
    assert not sized(LARGE_BYTES).is_large
    assert sized(LARGE_BYTES, 1).is_large


@pytest.mark.parametrize(
    ("known", "grown"),
    [
        ("sessions/1,2,3|4,5,6", True),
        ("sessions/1,2,3|4,6,6", False),
        ("sessions/1,2,3|4,4,1", True),
        ("sessions/1,2,3|9,4,1", False),
        ("sessions/1,2,4|4,4,1", False),
        ("old/1,2,3|4,4,1", False),
        ("sessions/1,2,3|-", False),
        ("", False),
    ],
)
def test_a_journal_that_only_grew_is_told_from_any_other_change(known: str, grown: bool) -> None:
    assert Stamp(HERE, (1, 2, 3), (4, 5, 6)).has_only_grown_since(known) is grown


def test_every_session_of_the_directories_is_found_the_first_directory_winning(tmp_path: Path) -> None:
    own, old = tmp_path / "own", tmp_path / "old"
    own.mkdir()
    old.mkdir()
    (own / f"{ONE}.json").write_text("12345")
    (own / f"{ONE}.journal").write_text("123")
    (own / f"{ONE}.lock").write_text("")
    (old / f"{ONE}.json").write_text("1")
    (old / f"{TWO}.journal").write_text("12")
    for name in ("notes.json", f"{TWO}.json.damaged-1", f".{TWO}.json.1.tmp", f"{ONE[:-1]}x.json", "a" * 36 + ".json"):
        (own / name).write_text("")

    found, locked = read_stamps([own, None, old, tmp_path / "missing"])

    assert {name: (stamp.directory, stamp.size) for name, stamp in found.items()} == {ONE: (own, 8), TWO: (old, 2)}
    assert locked == {ONE}
    assert read_stamp([None, own, old], ONE) == found[ONE]
    assert read_stamp([own, old], TWO) == found[TWO]
    assert read_stamp([own], TWO) is None
    stat = (own / f"{ONE}.json").stat()
    assert found[ONE].document == (stat.st_ino, 5, stat.st_mtime_ns)


@pytest.mark.parametrize(
    "stem",
    [
        "aaaa00000-000-4000-8000-000000000001",
        "aaaa0000-0000-4000-8000-00000000000-",
        "AAAA0000-0000-4000-8000-000000000001",
    ],
)
def test_what_only_looks_like_an_id_is_no_session(tmp_path: Path, stem: str) -> None:
    assert len(stem) == 36
    (tmp_path / f"{stem}.json").write_text("")

    assert read_stamps([tmp_path]) == ({}, set())


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"{ONE}.json").symlink_to("/etc/passwd")

    assert read_stamps([tmp_path])[0][ONE].size == len("/etc/passwd")
    stamp = read_stamp([tmp_path], ONE)
    assert stamp is not None
    assert stamp.size == os.lstat(tmp_path / f"{ONE}.json").st_size


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="Not a directory"):
        read_stamps([tmp_path / "file"])


def batch(*sizes: int) -> list[list[int]]:
    found = {str(place): sized(size) for place, size in enumerate(sizes)}
    return [[found[name].size for name in names] for names in make_batches(list(found), found)]


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ((), []),
        ((1, 2, 3), [[1, 2, 3]]),
        ((BATCH_BYTES, 1, 2), [[BATCH_BYTES, 1], [2]]),
        ((BATCH_BYTES + 1, 2), [[BATCH_BYTES + 1], [2]]),
        ((5, LARGE_BYTES - 4), [[5], [LARGE_BYTES - 4]]),
        ((5, LARGE_BYTES - 5, 1), [[5, LARGE_BYTES - 5], [1]]),
    ],
)
def test_small_sessions_share_a_batch_and_a_large_one_has_its_own(
    sizes: tuple[int, ...], batches: list[list[int]]
) -> None:
    assert batch(*sizes) == batches


@given(st.lists(st.integers(0, 30), max_size=20))
def test_batches_together_are_all_in_their_order(sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stamps, "BATCH_BYTES", 10)
        patch.setattr(stamps, "LARGE_BYTES", 25)
        found = batch(*sizes)

    assert [size for part in found for size in part] == sizes
    assert all(sum(part) <= 25 or len(part) == 1 for part in found)
    assert all(sum(part[:-1]) <= 10 for part in found)
