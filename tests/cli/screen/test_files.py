"""`@` completes files, also those that came after the list was first made."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ollm.cli.screen.files import WorkspaceFiles
from ollm.config.settings import FileDiscoverySettings
from ollm.services.file_discovery import FileDiscoveryService

PATIENCE_SECONDS = 60.0


@pytest.fixture
def discovery(tmp_path: Path) -> Iterator[FileDiscoveryService]:
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    yield service
    service.close()


def wait_until(holds: Callable[[], bool]) -> None:
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < PATIENCE_SECONDS, "it was not heard of"
        time.sleep(0.02)


def test_files_that_come_and_go_are_known_soon(tmp_path: Path, discovery: FileDiscoveryService) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/first.py").write_text("", encoding="utf-8")
    files = WorkspaceFiles(lambda: discovery, root)
    assert files.find("first") == ["src/first.py"]

    (root / "src/second.py").write_text("", encoding="utf-8")
    wait_until(lambda: "src/second.py" in files.find("second"))
    (root / "src/first.py").unlink()
    wait_until(lambda: "src/first.py" not in files.find("first"))


def test_directories_are_offered_before_the_files_in_them(tmp_path: Path, discovery: FileDiscoveryService) -> None:
    for path in ("src/deep/b.py", "src/a.py", "docs/source/x.md"):
        (tmp_path / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / path).write_text("x")
    files = WorkspaceFiles(lambda: discovery, tmp_path / "project")

    assert files.find("sr") == ["src/", "src/deep/", "src/a.py", "src/deep/b.py", "docs/source/x.md"]
    assert files.find("src/d")[0] == "src/deep/"
    assert files.find("So")[0] == "docs/source/"
    assert "src/" not in files.find("src/")
