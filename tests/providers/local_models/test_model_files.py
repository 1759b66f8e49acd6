"""Model files: fetched with progress, gone on with, checked, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ollm.domain.errors import NotFoundError, UsageError
from ollm.providers.local_models.model_files import (
    CATALOGUE,
    find_default,
    find_model,
    get_model_path,
    list_installed,
)
from ollm.providers.local_models.model_store import ModelStore


def test_the_catalogue_is_as_promised() -> None:
    assert [(model.name, model.size, model.sha256) for model in CATALOGUE] == [
        ("smollm2", 98362432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        ("qwen2.5-coder-0.5b", 491400064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
        ("qwen2.5-coder-1.5b", 1117320768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
    ]


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
