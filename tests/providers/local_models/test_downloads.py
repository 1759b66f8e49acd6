"""A file fetched from a URL: with progress, resumed where it stopped, kept when its checksum is right."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, NotFoundError, OllmError, StorageError, UsageError
from ollm.providers.local_models.model_files import (
    CatalogueModel,
    find_default,
    find_model,
    get_model_path,
    list_installed,
)
from ollm.providers.local_models.model_store import ModelStore
from ollm.system.locks import OwnerLock
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


def test_a_model_is_fetched_with_progress_and_kept_private(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with serving(FileServer(CONTENT)) as files:
        files.redirect_first = True
        got = ModelStore(tmp_path / "models", {"tiny": files.url}).get(MODEL, lambda *step: told.append(step))

    assert got.path.read_bytes() == CONTENT
    assert stat.S_IMODE(got.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(got.path.parent.stat().st_mode) == 0o700
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in got.path.parent.iterdir()] == ["tiny.gguf"]


def test_a_second_get_needs_no_network(tmp_path: Path) -> None:
    with serving(FileServer(CONTENT)) as files:
        store = ModelStore(tmp_path, {"tiny": files.url})
        store.get(MODEL, quiet)
    store.get(MODEL, quiet)

    assert len(files.asked) == 1


def test_a_half_of_another_file_does_not_stay_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(b"other" * 1000)
    with serving(FileServer(CONTENT)) as files:
        store = ModelStore(tmp_path, {"tiny": files.url})
        with pytest.raises(StorageError):
            store.get(MODEL, quiet)
        assert store.get(MODEL, quiet).path.read_bytes() == CONTENT


def test_a_whole_part_is_checked_and_kept_without_asking_again(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_bytes(CONTENT)

    assert ModelStore(tmp_path, {"tiny": "http://127.0.0.1:1/"}).get(MODEL, quiet).path.read_bytes() == CONTENT


def test_two_fetching_at_once_do_not_mix(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path / ".tiny.lock")
    lock.acquire("x")
    with pytest.raises(BusyError, match="download of tiny is in use by"):
        ModelStore(tmp_path, {"tiny": "http://127.0.0.1:1/"}).get(MODEL, quiet)
    lock.release()


def test_only_what_can_be_vouched_for_is_fetched(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, {})

    with pytest.raises(NotFoundError, match=r"Did you mean smollm2\? For other models use --url URL --sha256"):
        store.resolve_model("smolm2")
    with pytest.raises(UsageError, match=r"models\.urls"):
        store.resolve_model("mine", sha256="ab" * 32)
    assert store.resolve_model("mine", url="http://x/", sha256="AB" * 32).sha256 == "ab" * 32
    with pytest.raises(UsageError, match="is not a valid model name"):
        store.resolve_model("../mine", url="http://x/", sha256="ab" * 32)


def test_files_are_found_listed_and_removed_by_name(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").write_bytes(b"x")
    (tmp_path / "large.gguf").write_bytes(b"xyz")
    (tmp_path / "note.txt").write_bytes(b"")
    (tmp_path / "small.gguf.whl.part").write_bytes(b"")
    store = ModelStore(tmp_path, {})

    assert [file.name for file in list_installed(tmp_path)] == ["large", "small"]
    assert find_model(tmp_path, "small") == find_model(tmp_path, "small.gguf")
    assert find_default(tmp_path) == find_model(tmp_path, "large")
    store.remove("small")
    with pytest.raises(NotFoundError):
        store.remove("small")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.gguf", "note.txt"]
    assert list_installed(tmp_path / "none") == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", ".hidden", "a\0b"])
def test_a_name_never_leaves_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        get_model_path(tmp_path, name)
