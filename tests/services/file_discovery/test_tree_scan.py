"""A tree is scanned again and again: what came, went, or is hidden by a new rule is always seen."""

import random
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.services.file_discovery.service import FileDiscoveryService
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
