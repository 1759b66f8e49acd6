"""What the file system says of every session, so that only changed ones are read."""

import os
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.store.session_index.stamps import Stamp, read_stamp, read_stamps

ONE = "aaaa0000-0000-4000-8000-000000000001"
TWO = "bbbb0000-0000-4000-8000-000000000002"
HERE = Path("/x/sessions")


def sized(document: int, journal: int | None = None) -> Stamp:
    return Stamp(HERE, (1, document, 5), None if journal is None else (2, journal, 7))


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
