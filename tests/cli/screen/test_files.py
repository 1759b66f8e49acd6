"""`@` completes files that came after the list was first made, as soon as they are there."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ollm.cli.screen import files as screen_files
from ollm.cli.screen.files import WorkspaceFiles
from ollm.config.settings import FileDiscoverySettings
from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def lists_do_not_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known here is known by the watch alone, however slow the machine is."""
    monkeypatch.setattr(screen_files, "FRESH_SECONDS", 100 * PATIENCE_SECONDS)
    monkeypatch.setattr(screen_files, "WATCH_PAUSE_SECONDS", 0.0)


@pytest.fixture
def discovery(tmp_path: Path) -> Iterator[FileDiscoveryService]:
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    yield service
    service.close()


def wait_until(holds: Callable[[], bool]) -> float:
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < PATIENCE_SECONDS, "it was not heard of"
        time.sleep(0.02)
    return time.monotonic() - start


@covers("S6.7")
def test_files_that_come_and_go_are_known_without_waiting_for_the_list_to_grow_old(
    tmp_path: Path, discovery: FileDiscoveryService
) -> None:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/first.py").write_text("", encoding="utf-8")
    files = WorkspaceFiles(lambda: discovery, root)
    assert files.find("first") == ["src/first.py"]
    wait_until(lambda: discovery.get_watch_state(str(root)) == "events")

    (root / "src/second.py").write_text("", encoding="utf-8")
    wait_until(lambda: "src/second.py" in files.find("second"))
    (root / "src/first.py").unlink()
    wait_until(lambda: "src/first.py" not in files.find("first"))


def test_a_list_made_while_files_change_ends_up_right(tmp_path: Path, discovery: FileDiscoveryService) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "one.py").write_text("", encoding="utf-8")
    files = WorkspaceFiles(lambda: discovery, root)
    files.find("one")

    for number in range(40):
        (root / f"new{number}.py").write_text("", encoding="utf-8")

    wait_until(lambda: files.find("new39") == ["new39.py"])


def test_the_tree_is_watched_only_once_the_typing_pauses(
    tmp_path: Path, discovery: FileDiscoveryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.setattr(screen_files, "WATCH_PAUSE_SECONDS", 2.0)
    files = WorkspaceFiles(lambda: discovery, tmp_path / "project")
    start = time.monotonic()
    files.find("first")
    files.find("firs")

    wait_until(lambda: discovery.get_watch_state(str(tmp_path / "project")) == "events")

    assert time.monotonic() - start >= 2.0


def test_directories_are_offered_before_the_files_in_them(tmp_path: Path, discovery: FileDiscoveryService) -> None:
    for path in ("src/deep/b.py", "src/a.py", "docs/source/x.md"):
        (tmp_path / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / path).write_text("x")
    files = WorkspaceFiles(lambda: discovery, tmp_path / "project")

    assert files.find("sr") == ["src/", "src/deep/", "src/a.py", "src/deep/b.py", "docs/source/x.md"]
    assert files.find("src/d")[0] == "src/deep/"
    assert files.find("So")[0] == "docs/source/"
    assert "src/" not in files.find("src/")
