"""What discovery remembers of trees."""

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DirectoryContent, DiscoveryOptions, TreeTooLarge
from ollm.services.file_discovery import walk
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.system.folders import FolderNames, read_names
from tests.covers import covers
from tests.services.file_checkpoints.trees import change_tree
from tests.services.file_discovery.looking import files, plant, rules


def make_old(root: Path) -> None:
    """A directory's time moves in steps; make all of them old enough to prove something."""
    past = time.time() - 100
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        os.utime(folder, (past, past))


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories that were read."""
    read: list[str] = []

    def count(path: str) -> FolderNames:
        read.append(path)
        return read_names(path)

    monkeypatch.setattr(walk, "read_names", count)
    return read


@covers("S6.6")
async def test_a_second_answer_reads_no_directory(service: FileDiscoveryService, root: Path, walks: list[str]) -> None:
    plant(root, "a", "b/c", "b/d/e")
    make_old(root)

    first = await files(service, root)
    read = len(walks)
    second = await files(service, root)
    streamed = {entry.relative_path async for entry in service.discover(DiscoveryOptions(root=str(root)))}

    assert first == second == streamed == {"a", "b/c", "b/d/e"}
    assert len(walks) == read == 3


async def test_calls_side_by_side_share_one_walk(service: FileDiscoveryService, root: Path, walks: list[str]) -> None:
    plant(root, *(f"{number}/file" for number in range(200)))
    make_old(root)

    found = await asyncio.gather(*(files(service, root) for _ in range(6)))

    assert [len(paths) for paths in found] == [200] * 6
    assert len(walks) == 201


def gone(root: Path) -> None:
    (root / "b" / "c").unlink()


def moved(root: Path) -> None:
    (root / "b").rename(root / "z")


def rule_added(root: Path) -> None:
    rules(root, "b/.gitignore", "c")


def rule_changed(root: Path) -> None:
    rules(root, ".gitignore", "a", "# so that it is longer")


def rule_changed_in_git(root: Path) -> None:
    rules(root, ".git/info/exclude", "a")


def became_a_directory(root: Path) -> None:
    (root / "a").unlink()
    plant(root, "a/file")


@covers("S6.6")
@pytest.mark.parametrize(
    "change", [gone, moved, rule_added, rule_changed, rule_changed_in_git, became_a_directory], ids=lambda f: f.__name__
)
async def test_whatever_changes_is_noticed(
    service: FileDiscoveryService, root: Path, change: Callable[[Path], None]
) -> None:
    plant(root, "a", "b/c", "b/d/e", "empty/x")
    (root / "empty" / "x").unlink()
    rules(root, ".gitignore", "nothing")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    make_old(root)
    before = await files(service, root)

    change(root)

    after = await files(service, root)
    assert after != before
    assert after == await files(FileDiscoveryService(FileDiscoverySettings(), root / "home"), root)


async def test_a_file_in_a_directory_that_was_empty_is_noticed(service: FileDiscoveryService, root: Path) -> None:
    (root / "empty" / "inside").mkdir(parents=True)
    make_old(root)
    assert await files(service, root) == set()

    plant(root, "empty/inside/new")

    assert await files(service, root) == {"empty/inside/new"}


async def test_changes_within_one_tick_of_the_clock_are_noticed(service: FileDiscoveryService, root: Path) -> None:
    for number in range(200):
        (root / str(number)).touch()
        assert len(await files(service, root)) == number + 1


async def test_sizes_are_read_anew_every_time(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a")
    make_old(root)
    options = DiscoveryOptions(root=str(root), stat=True)
    (before,) = await service.discover_all(options)
    (root / "a").write_text("something longer")
    (after,) = await service.discover_all(options)

    assert (before.size, after.size) == (5, 16)


async def test_a_root_made_anew_is_read_anew(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a")
    make_old(root)
    await files(service, root)
    shutil.rmtree(root)
    plant(root, "b")

    assert await files(service, root) == {"b"}


def scan(service: FileDiscoveryService, root: Path) -> list[DirectoryContent]:
    return service.scan_tree(str(root), 10**6)


def test_every_scan_shows_what_a_first_one_would(tmp_path: Path) -> None:
    root, chance = tmp_path / "tree", random.Random(7)
    root.mkdir()
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    for number in range(25):
        change_tree(root, chance, 4)
        if number % 8 == 7:
            (root / ".gitignore").write_text(f"{chance.choice('abc')}*\n")
        fresh = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
        assert scan(service, root) == scan(fresh, root)


def test_a_link_to_a_directory_is_a_name_and_not_gone_into(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d" / "a").touch()
    (root / "again").symlink_to(root / "d")

    found = scan(FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home"), root)

    assert [place.files for place in found] == [[], ["a"]]


def test_a_tree_with_more_files_than_are_wanted_is_too_large(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for name in ("a", "b", "c/d"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "link").symlink_to("a")
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")

    assert len(service.scan_tree(str(root), 4)) == 2
    with pytest.raises(TreeTooLarge):
        service.scan_tree(str(root), 3)
