"""The paths of a large tree are read by two processes: they are those of one, whatever becomes of the other."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import walk as walk_module
from ollm.services.file_discovery.patterns import compile_globs
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.services.file_discovery.walk import PathReader, Walk
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import plant, rules
from tests.services.file_discovery.trees import RandomTree
from tests.sizes import size


def new_walk(service: FileDiscoveryService, root: Path, **options: object) -> Walk:
    return service._make_walk(service._complete_options(DiscoveryOptions(root=str(root), **options)))


def wide(root: Path, folders: int = 60, below: int = 4) -> None:
    for number in range(folders):
        for inner in range(below):
            folder = root / f"f{number}" / f"g{inner}"
            folder.mkdir(parents=True)
            (folder / "one.py").touch()
            (folder / "two.log").touch()
        (root / f"f{number}" / ".gitignore").write_text("*.log\n" if number % 2 else "g1/\n")


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started, in the part of a machine with two cores that has no others."""
    started: list[int] = []
    fork = os.fork

    def counted() -> int:
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(walk_module, "_can_fork", lambda: True)
    return started


def read_alone(walk: Walk, *globs: str) -> bytes:
    """The paths that one process finds."""
    search = compile_globs(globs)
    paths = [listing.place.prefix + name for listing in walk for name in listing.files]
    if search is not None:
        found = search.find_matches("", paths)
        paths = [path for path in paths if path in found]
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def compare(service: FileDiscoveryService, root: Path, *globs: str, **options: object) -> Walk:
    """The walk of which the lines were read by two."""
    walk = new_walk(service, root, **options)
    before = children()
    assert PathReader(walk, compile_globs(globs)).read() == read_alone(new_walk(service, root, **options), *globs)
    assert children() == before
    return walk


def test_two_give_the_lines_of_one(service: FileDiscoveryService, root: Path, forks: list[int]) -> None:
    wide(root)
    (root / os.fsdecode(b"f7/g\xff\n")).mkdir()
    plant(root, os.fsdecode(b"f7/g\xff\n/\xe9.txt"), "f9/.git/HEAD", "z")
    rules(root, ".gitignore", "/f1*/", "!f11")
    (root / "f3" / "link").symlink_to(root / "f4")

    for globs in ((), ("*.py",), ("f2/**", "one*")):
        compare(service, root, *globs)
    assert len(forks) == 3


def test_random_trees_and_rules(
    service: FileDiscoveryService, tmp_path: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "MIN_SHARED_DIRECTORIES", 2)
    for seed in range(size(25, 400)):
        tree = tmp_path / str(seed)
        RandomTree(seed, tree).make(second=".ollmignore")
        compare(service, tree)
        compare(service, tree, max_depth=1)
    assert len(forks) > 20


def dies(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(*_: object) -> bytes:
    raise MemoryError


@pytest.mark.parametrize("dumps", [dies, fails])
def test_whatever_becomes_of_the_other(
    service: FileDiscoveryService, root: Path, monkeypatch: pytest.MonkeyPatch, dumps: Callable[..., Any]
) -> None:
    wide(root)
    monkeypatch.setattr(walk_module.marshal, "dumps", dumps)
    compare(service, root)


def test_what_the_other_meets_is_known_here(service: FileDiscoveryService, root: Path) -> None:
    wide(root)
    assert not compare(service, root).has_troubles
    rules(root, "f50/g3/.gitignore", "[x")
    assert compare(service, root).reader.bad
    assert compare(service, root, max_depth=1).too_deep


def test_directories_that_may_not_be_read_are_named() -> None:
    from ollm.config.settings import FileDiscoverySettings

    def body(home: Path) -> None:
        root = home / "project"
        wide(root)
        for number in (0, 30, 59):
            (root / f"f{number}" / "g2").chmod(0)
        walk = new_walk(FileDiscoveryService(FileDiscoverySettings(), home), root)
        PathReader(walk).read()
        assert sorted(walk.unreadable) == ["f0/g2", "f30/g2", "f59/g2"]

    as_ordinary_user(body)


async def test_the_paths_are_what_discovery_gives(service: FileDiscoveryService, root: Path, forks: list[int]) -> None:
    wide(root, folders=200)
    options = DiscoveryOptions(root=str(root))

    entries = await service.discover_all(options)

    assert service.read_paths(options).paths == [entry.relative_path for entry in entries]
    assert len(forks) == 1


def test_a_process_with_several_threads_does_not_fork(
    service: FileDiscoveryService, root: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    wide(root)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert PathReader(new_walk(service, root)).read() == read_alone(new_walk(service, root))
    finally:
        stop.set()
        thread.join()
    assert not forks
