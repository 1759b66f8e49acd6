"""Fetching and removing models of the catalogue."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, NotFoundError, StorageError, UsageError
from ollm.providers.local_models.model_files import (
    CatalogueModel,
    ModelFile,
)
from ollm.providers.local_models.model_store import ModelStore
from ollm.system.locks import OwnerLock
from tests.servers.files import FileServer, serving

CONTENT = bytes(range(256)) * 8192  # two megabytes


HASH = hashlib.sha256(CONTENT).hexdigest()


MODEL = CatalogueModel(name="tiny", about="", size=len(CONTENT), sha256=HASH)


def quiet(done: int, total: int) -> None:
    pass


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


def test_a_model_that_is_here_is_given_and_can_be_removed(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "models", {})
    (tmp_path / "source").write_bytes(CONTENT)
    url = (tmp_path / "source").as_uri()
    assert store.find_installed("tiny") is None
    made = store.get(MODEL, quiet, url=url)
    assert made == ModelFile(name="tiny", path=tmp_path / "models" / "tiny.gguf", size=len(CONTENT))
    assert store.get(MODEL, quiet, url="file:///no/such/file") == made == store.find_installed("tiny")
    for left in ("tiny.gguf.part", "tiny.gguf.whl.part"):
        (tmp_path / "models" / left).write_text("x")

    assert store.remove("tiny") == made
    assert [path.name for path in (tmp_path / "models").iterdir() if not path.name.endswith(".lock")] == []
    with pytest.raises(NotFoundError) as caught:
        store.remove("tiny")
    assert (caught.value.message, caught.value.action) == (
        "No model file 'tiny'.",
        "List them with `ollm models list`.",
    )


def test_what_is_left_of_a_broken_download_goes_though_there_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf.part").write_text("x")

    with pytest.raises(NotFoundError):
        ModelStore(tmp_path, {}).remove("tiny")
    assert list(tmp_path.iterdir()) == []
