"""A tree is scanned again and again: what came, went, or is hidden by a new rule is always seen."""

import os
import random
import time
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.services.file_discovery import FileDiscoveryService, tree_scan
from tests.services.file_checkpoints.trees import change_tree


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


def test_names_of_a_directory_that_did_not_change_are_not_read_again(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d" / "a").touch()
    for place in (root / "d", root):
        os.utime(place, ns=(1, 1))
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    deadline = time.monotonic() + 60
    scanner = tree_scan.TreeScanner()
    service._scanners[str(root.resolve())] = scanner
    while len(scanner._known) < 2:  # until the directories are older than a tick of the clock
        before = scan(service, root)
        assert time.monotonic() < deadline
    known = dict(scanner._known)

    assert scan(service, root) == before
    assert all(scanner._known[path][1] is reading for path, (_, reading) in known.items())
    (root / "d" / "b").touch()
    os.utime(root / "d", ns=(1, 1))
    assert scan(service, root)[1].files == ["a", "b"]


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


@pytest.mark.parametrize(
    ("age", "settled"),
    [(20_000_001, True), (20_000_000, False), (0, False), (-5, False), (10**10 + 1, True)],
)
def test_times_prove_something_when_they_are_older_than_the_clock_is_coarse(age: int, settled: bool) -> None:
    began = 1_700_000_000_500_000_000
    for stamp in ((began - age, began - 10**12 - 1), (began - 10**12 - 1, began - age)):
        assert tree_scan._is_settled((*stamp, 1, 1), began) is settled


@pytest.mark.parametrize(("age", "settled"), [(1, False), (2, False), (3, True), (4, True)])
def test_whole_seconds_are_the_times_of_a_coarse_clock(age: int, settled: bool) -> None:
    began = 1_700_000_000_000_000_000
    whole = began - age * 10**9

    assert tree_scan._is_settled((whole, whole, 1, 1), began) is settled
    assert tree_scan._is_settled((whole, whole + 1, 1, 1), began) is True, "that clock is not coarse"


@pytest.mark.parametrize(
    ("failure", "settled", "remembered"), [("", True, 1), ("", False, 0), ("unreadable", True, 0), ("gone", False, 0)]
)
def test_only_what_was_read_whole_and_has_settled_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, settled: bool, remembered: int
) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    service = FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")
    scan(service, root)
    monkeypatch.setattr(tree_scan, "read_directory", lambda path: ((1, 1, 1), failure, ["a"], [], []))
    monkeypatch.setattr(tree_scan, "_is_settled", lambda stamp, began: settled)

    assert [place.files for place in scan(service, root)] == ([] if failure else [["a"]])
    (scanner,) = service._scanners.values()
    assert len(scanner._known) == remembered
