"""The lines of a large tree are read by two processes: they are those of one, whatever becomes of the other."""

import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService, path_lines
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.path_lines import PathLineReader
from ollm.services.file_discovery.walk import Walk
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import plant, rules
from tests.services.file_discovery.test_parallel_walk import children, new_walk, wide
from tests.services.file_discovery.trees import RandomTree
from tests.sizes import size


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started, in the part of a machine with two cores that has no others."""
    started: list[int] = []
    fork = os.fork

    def counted() -> int:
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(path_lines, "_can_fork", lambda: True)
    return started


def lines_of_walk(walk: Walk, *globs: str) -> tuple[bytes, int]:
    """What one alone finds."""
    search = compile_globs(globs)
    paths = [listing.place.prefix + name for listing in walk for name in listing.files]
    if search is not None:
        found = search.find_matches("", paths)
        paths = [path for path in paths if path in found]
    return b"".join(os.fsencode(path) + b"\n" for path in paths), len(paths)


def read(reader: PathLineReader) -> tuple[bytes, int]:
    """All pieces together."""
    texts, counts = zip(*reader.read(), strict=True)
    return b"".join(texts), sum(counts)


def compare(service: FileDiscoveryService, root: Path, *globs: str, **options: object) -> Walk:
    """The walk of which the lines were read by two."""
    walk = new_walk(service, root, **options)
    before = children()
    assert read(PathLineReader(walk, compile_globs(globs))) == lines_of_walk(new_walk(service, root, **options), *globs)
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
    monkeypatch.setattr(path_lines, "MIN_SHARED_DIRECTORIES", 2)
    for seed in range(size(25, 400)):
        tree = tmp_path / str(seed)
        RandomTree(seed, tree).make(second=".ollmignore")
        compare(service, tree)
        compare(service, tree, max_depth=1)
    assert len(forks) > 20


def test_each_takes_a_part(service: FileDiscoveryService, root: Path, tmp_path: Path) -> None:
    wide(root, folders=100)
    told = tmp_path / "told"

    class Telling(PathLineReader):
        def _read_piece(self, parts: Any) -> tuple[bytes, int]:
            with told.open("a") as stream:
                stream.write(f"{os.getpid()}\n")
            with told.open() as stream:
                while len(set(stream)) < 2:  # the other has come, or never does
                    stream.seek(0)
            return super()._read_piece(parts)

    assert read(Telling(new_walk(service, root))) == lines_of_walk(new_walk(service, root))
    taken = told.read_text().split()
    assert len(taken) == 51  # two of 101 directories at a time, none twice
    assert len(set(taken)) == 2


def dies(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(*_: object) -> bytes:
    raise MemoryError


@pytest.mark.parametrize("dumps", [dies, fails, lambda told: b"", lambda told: marshal.dumps(told[:1])])
def test_whatever_becomes_of_the_other(
    service: FileDiscoveryService, root: Path, monkeypatch: pytest.MonkeyPatch, dumps: Callable[[Any], bytes]
) -> None:
    wide(root)
    monkeypatch.setattr(path_lines.marshal, "dumps", dumps)
    compare(service, root)


def test_a_text_that_does_not_fit_is_read_again(
    service: FileDiscoveryService, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(root)
    write = os.write

    def write_less(file: int, data: bytes) -> int:
        in_memory = str(Path(f"/proc/self/fd/{file}").readlink()).startswith("/memfd:")
        return write(file, data[:-1] if in_memory else data)

    monkeypatch.setattr(os, "write", write_less)
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
        PathLineReader(walk).read()
        assert sorted(walk.unreadable) == ["f0/g2", "f30/g2", "f59/g2"]

    as_ordinary_user(body)


def test_a_small_tree_and_links_that_are_followed_need_no_other(
    service: FileDiscoveryService, root: Path, forks: list[int]
) -> None:
    wide(root, folders=12)
    compare(service, root)
    for number in range(100):
        (root / f"link{number}").symlink_to("f1")
        (root / f"more{number}").mkdir()
    compare(service, root, follow_symlinks=True)
    assert not forks


def test_a_deep_tree_is_read_to_its_ground(service: FileDiscoveryService, root: Path, forks: list[int]) -> None:
    plant(root, "/".join("d" * 300) + "/x", "a/b/c/d/e/f/g/h/y", "z")
    compare(service, root)
    assert not forks


def test_a_tree_that_is_narrow_above_is_shared_too(service: FileDiscoveryService, root: Path, forks: list[int]) -> None:
    wide(root / "src/main/java/org/example/shop/cart")
    compare(service, root)
    assert len(forks) == 1


def test_a_second_process_needs_a_second_core(tmp_path: Path) -> None:
    wide(tmp_path)
    code = (
        "import os; fork, count = os.fork, []; os.fork = lambda: count.append(1) or fork()\n"
        f"os.chdir({str(tmp_path)!r}); os.environ['OLLM_HOME'] = '/nowhere'\n"
        "from ollm.cli.quick_list import print_list_quickly as show\n"
        "cores = os.sched_getaffinity(0)\n"
        "os.sched_setaffinity(0, {min(cores)}); show([]); print(len(count))\n"
        "os.sched_setaffinity(0, cores); show([]); print(len(count))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = ran.stdout.splitlines()
    half = len(said) // 2
    assert said[: half - 1] == said[half:-1]
    assert (said[half - 1], said[-1]) == ("0", str(int(len(os.sched_getaffinity(0)) > 1)))


async def test_the_lines_are_what_discovery_gives(service: FileDiscoveryService, root: Path) -> None:
    wide(root, folders=200)
    entries = await service.discover_all(DiscoveryOptions(root=str(root)))
    text, count = read(PathLineReader(new_walk(service, root)))
    assert os.fsdecode(text).splitlines() == [entry.relative_path for entry in entries]
    assert count == len(entries)
