"""A file fetched from a URL: with progress, resumed where it stopped, kept when its checksum is right."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ollm.domain.errors import OllmError, StorageError, UsageError
from ollm.providers.local_models.model_files import (
    CatalogueModel,
)
from ollm.providers.local_models.model_store import ModelStore
from tests.servers.files import FileServer, serving

CONTENT = bytes(range(256)) * 8192  # two megabytes


HASH = hashlib.sha256(CONTENT).hexdigest()


MODEL = CatalogueModel(name="tiny", about="", size=len(CONTENT), sha256=HASH)


def quiet(done: int, total: int) -> None:
    pass


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path, ranges: bool) -> None:
    with serving(FileServer(CONTENT, ranges=ranges)) as files:
        store = ModelStore(tmp_path, {"tiny": files.url})
        files.break_after = [1_500_000, 100]
        for _ in range(2):
            with pytest.raises(OllmError, match=r"Download of .* failed.*again to resume"):
                store.get(MODEL, quiet)
        got = store.get(MODEL, quiet)

    assert got.path.read_bytes() == CONTENT
    assert files.asked[0] == ""
    assert all(asked.startswith("bytes=") for asked in files.asked[1:])


def test_a_wrong_hash_removes_what_came_and_says_so(tmp_path: Path) -> None:
    with serving(FileServer(CONTENT[:-1] + b"X")) as files:
        with pytest.raises(StorageError, match=r"wrong checksum .* was deleted"):
            ModelStore(tmp_path, {"tiny": files.url}).get(MODEL, quiet)

    assert list(tmp_path.iterdir()) == []


def test_too_small_a_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = CatalogueModel(name="huge", about="", size=10**18, sha256=HASH)

    with pytest.raises(StorageError, match=r"is full: \d+ MB more needed"):
        ModelStore(tmp_path, {"huge": "http://127.0.0.1:1/"}).get(huge, quiet)


def test_a_disk_that_fills_up_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").symlink_to("/dev/full")
    with serving(FileServer(CONTENT)) as files:
        with pytest.raises(StorageError, match=r"full.*Free some space.*again to resume"):
            ModelStore(tmp_path, {"tiny": files.url}).get(MODEL, quiet)

    assert (tmp_path / "tiny.gguf.part").is_symlink()


def test_a_refusal_and_no_network_are_told(tmp_path: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        files.status = 403
        with pytest.raises(OllmError, match="returned 403"):
            ModelStore(tmp_path, {"tiny": files.url}).get(MODEL, quiet)
    with pytest.raises(OllmError, match="failed"):
        ModelStore(tmp_path, {"tiny": "http://127.0.0.1:1/"}).get(MODEL, quiet)
    with pytest.raises(UsageError, match="only http, https and file"):
        ModelStore(tmp_path, {"tiny": "ftp://x/y"}).get(MODEL, quiet)


def test_no_number_of_the_system_is_told(tmp_path: Path) -> None:
    with pytest.raises(OllmError, match=r"failed: ") as told:
        ModelStore(tmp_path, {"tiny": "http://127.0.0.1:1/"}).get(MODEL, quiet)

    assert "Errno" not in str(told.value)


def test_a_file_url_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a b.gguf").write_bytes(CONTENT)
    store = ModelStore(tmp_path / "models", {"tiny": (tmp_path / "a b.gguf").as_uri()})

    assert store.get(MODEL, quiet).path.read_bytes() == CONTENT
