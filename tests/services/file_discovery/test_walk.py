"""The walk: what is pruned, what a link leads to, and how deep it goes."""

import os
from pathlib import Path

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant, rules


@covers("D305", "D305", "D445")
async def test_links_are_left_out_unless_followed_and_never_lead_out(
    service: FileDiscoveryService, root: Path, tmp_path: Path
) -> None:
    plant(root, "real/a.txt")
    plant(tmp_path, "outside/secret.txt")
    (root / "inside").symlink_to("real")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to("real/a.txt")
    (root / "away").symlink_to(tmp_path / "outside" / "secret.txt")

    assert await files(service, root) == {"real/a.txt"}
    assert await files(service, root, follow_symlinks=True) == {"real/a.txt", "inside/a.txt", "file"}


@covers("D625", "D625")
async def test_circles_and_knots_of_links_end(service: FileDiscoveryService, root: Path) -> None:
    for name in "abcdefgh":
        plant(root, f"{name}/file")
    for one in "abcdefgh":
        for other in "abcdefgh":
            (root / one / f"to-{other}").symlink_to(root / other)
    (root / "self").symlink_to(root)

    found = await files(service, root, follow_symlinks=True)

    assert {path for path in found if path.count("/") == 1} >= {f"{name}/file" for name in "abcdefgh"}
    assert len(found) < 200


async def test_a_very_deep_tree(service: FileDiscoveryService, root: Path) -> None:
    deep = root
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").touch()

    assert len(await files(service, root)) == 1


async def test_special_files_are_left_out(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a")
    os.mkfifo(root / "pipe")
    (root / "dangling").symlink_to("nowhere")
    (root / "zero").symlink_to("/dev/zero")

    assert await files(service, root) == {"a"}
    assert await files(service, root, follow_symlinks=True) == {"a"}


async def test_files_come_before_what_is_below_and_each_directory_before_the_next(
    service: FileDiscoveryService, root: Path
) -> None:
    plant(root, "b/x", "b/a/y", "c", "a/z")

    found = await service.discover_all(DiscoveryOptions(root=str(root)))

    assert [entry.relative_path for entry in found] == ["c", "a/z", "b/x", "b/a/y"]


async def test_hidden_names_are_shown_unless_unwanted_and_git_never(service: FileDiscoveryService, root: Path) -> None:
    plant(root, ".env", ".github/x", "a", "sub/.git/config", "sub/.x", "!bang", "#hash")

    assert await files(service, root) == {".env", ".github/x", "a", "sub/.x", "!bang", "#hash"}
    assert await files(service, root, hidden=False) == {"a", "!bang", "#hash"}


async def test_directories_that_show_only_a_part_are_named(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "whole/a", "part/a", "part/b.log", "folders/node_modules/x", "folders/y")
    rules(root, ".gitignore", "*.log")

    found = await service.find_paths(DiscoveryOptions(root=str(root)))

    assert found.in_part == {"part"}


async def test_a_link_to_a_folder_makes_its_parent_shown_in_part(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "real/a")
    (root / "link").symlink_to("real")

    found = await service.find_paths(DiscoveryOptions(root=str(root), follow_symlinks=True))

    assert found.in_part == {""}
    assert sorted(found.paths) == ["link/a", "real/a"]


async def test_at_the_limit_the_folders_are_named_and_not_read(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a/b/c/d", "a/x")

    found = await service.find_paths(DiscoveryOptions(root=str(root), max_depth=1))

    assert (found.paths, found.too_deep) == (["a/x"], 1)
    assert found.notes == ("skipped 1 directory deeper than fileDiscovery.maxDepth",)


async def test_links_stand_among_the_others_by_name(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "m.txt", "z.txt", "n/x", "y/x")
    for link, target in (("a.txt", "z.txt"), ("o.txt", "m.txt"), ("b", "n"), ("p", "y")):
        (root / link).symlink_to(target)

    found = await service.discover_all(DiscoveryOptions(root=str(root), follow_symlinks=True))

    names = [entry.relative_path for entry in found]
    assert names == ["a.txt", "m.txt", "o.txt", "z.txt", "b/x", "n/x", "p/x", "y/x"]
