"""A large tree is read by two processes: the answer and its order are those of one, whatever becomes of the other."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService, reading
from ollm.services.file_discovery import parallel_reader as second_reader
from ollm.services.file_discovery import parallel_walk as together
from ollm.services.file_discovery.parallel_reader import ReaderProcess
from ollm.services.file_discovery.walk import Walk
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.trees import RandomTree
from tests.sizes import size

Seen = tuple[list[tuple[str, list[str], list[str]]], dict[str, object], set[str], list[str], list[str]]


def new_walk(service: FileDiscoveryService, root: Path, **options: object) -> Walk:
    return service._make_walk(service._complete_options(DiscoveryOptions(root=str(root), **options)))


def seen(walk: Walk, *, shared: bool) -> Seen:
    found = together.iter_listings(walk, alone=0) if shared else iter(walk)
    listings = [(listing.place.relative, listing.files, listing.folders) for listing in found]
    return listings, walk.directories, walk.in_part, sorted(walk.unreadable), sorted(walk.too_deep)


def both(service: FileDiscoveryService, root: Path, **options: object) -> tuple[Seen, Seen]:
    return seen(new_walk(service, root, **options), shared=True), seen(new_walk(service, root, **options), shared=False)


def wide(root: Path, folders: int = 60, below: int = 4) -> None:
    for number in range(folders):
        for inner in range(below):
            folder = root / f"f{number}" / f"g{inner}"
            folder.mkdir(parents=True)
            (folder / "one.py").touch()
            (folder / "two.log").touch()
        (root / f"f{number}" / ".gitignore").write_text("*.log\n" if number % 2 else "g1/\n")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many directories the other process was asked for, order by order. It is waited for, so that it has its share
    of a tree which one alone would have read by then."""
    counts: list[int] = []

    class Counted(ReaderProcess):
        def send_request(self, paths: Sequence[str]) -> int:
            counts.append(super().send_request(paths))
            return counts[-1]

        def receive_readings(self, *, wait: bool) -> list[reading.Reading] | None:
            return super().receive_readings(wait=True)

    monkeypatch.setattr(together, "ReaderProcess", Counted)
    return counts


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@covers("S6.1")
def test_two_give_the_answer_of_one_in_the_same_order(
    service: FileDiscoveryService, root: Path, asked: list[int]
) -> None:
    wide(root)
    before = children()
    shared, alone = both(service, root)
    assert shared == alone
    assert sum(asked) > 50
    assert children() == before


def test_random_trees_and_rules(
    service: FileDiscoveryService, tmp_path: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MIN_WAITING_DIRECTORIES", 2)
    for seed in range(size(25, 400)):
        tree = tmp_path / str(seed)
        RandomTree(seed, tree).make(second=".ollmignore")
        shared, alone = both(service, tree)
        assert shared == alone, seed
        shared, alone = both(service, tree, max_depth=1)
        assert shared == alone, seed
    assert sum(asked) > 100


def test_odd_names_and_long_ones(service: FileDiscoveryService, root: Path, asked: list[int]) -> None:
    for number in range(40):
        folder = root / os.fsdecode(b"n\xff\n%d" % number) / ("d" * 250) / ("e" * 250)
        folder.mkdir(parents=True)
        (folder / os.fsdecode(b"\xe9.txt")).touch()
    shared, alone = both(service, root)
    assert shared == alone
    assert sum(asked) > 10


def test_ten_thousand_files_in_one_directory(service: FileDiscoveryService, root: Path) -> None:
    wide(root, folders=10, below=1)
    for number in range(10_000):
        (root / "f0" / f"file_with_a_long_name_to_fill_the_pipe_{number}").touch()
    shared, alone = both(service, root)
    assert shared == alone


def killed_after(answers: int) -> type[ReaderProcess]:
    class Killed(ReaderProcess):
        heard = 0

        def receive_readings(self, *, wait: bool) -> list[reading.Reading] | None:
            self.heard += 1
            if self.heard > answers:
                self._process.kill()
                self._process.wait()
            return super().receive_readings(wait=wait)

    return Killed


def talking(program: str) -> type[ReaderProcess]:
    class Talking(ReaderProcess):
        def __init__(self, root: str) -> None:
            usual, count = reading.__file__, second_reader.threading.active_count
            try:
                reading.__file__ = program
                second_reader.threading.active_count = lambda: 2  # type: ignore[assignment]
                super().__init__(root)
            finally:
                reading.__file__, second_reader.threading.active_count = usual, count

    return Talking


def not_there(root: str) -> ReaderProcess:
    raise FileNotFoundError("there is no interpreter")


NONSENSE = "import sys; sys.stdout.buffer.write({said!r}); sys.stdout.flush(); sys.stdin.read()"


@pytest.mark.parametrize(
    "other",
    [
        killed_after(0),
        killed_after(1),
        killed_after(2),
        killed_after(4),
        not_there,
        b"",
        b"\0\0\0\x04what",
        b"\0\0\0\x05[\1\0\0\0" + b"\0\0\0\1N",
        b"\0\0\0\1N\0\0\0\1N",
        b"hello, I am another program",
    ],
)
def test_whatever_becomes_of_the_other(
    service: FileDiscoveryService,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: type[ReaderProcess] | Callable[[str], ReaderProcess] | bytes,
) -> None:
    wide(root)
    if isinstance(other, bytes):
        program = tmp_path / "other.py"
        program.write_text(NONSENSE.format(said=other) if other else "")
        other = talking(str(program))
    monkeypatch.setattr(together, "ReaderProcess", other)
    monkeypatch.setattr(second_reader, "SILENCE_TIMEOUT_SECONDS", 0.3)
    before = children()
    shared, alone = both(service, root)
    assert shared == alone
    assert children() == before


def test_a_directory_that_goes_while_it_waits(service: FileDiscoveryService, root: Path) -> None:
    wide(root)
    walk = new_walk(service, root)
    first = walk.visit(walk.start)
    assert first is not None
    subprocess.run(["rm", "-r", str(root / "f3"), str(root / "f40")], check=True)
    found = {
        place.relative: walk.apply_rules(place, reading.read_directory(walk.get_path(place.relative)))
        for place in first.below
    }
    assert {relative for relative, listing in found.items() if listing is None} == {"f3", "f40"}


@covers("S10.4")
def test_directories_that_may_not_be_read_are_named() -> None:
    def body(home: Path) -> None:
        root = home / "project"
        wide(root)
        for number in (0, 30, 59):
            (root / f"f{number}").chmod(0)
        service = FileDiscoveryService(FileDiscoverySettings(), home)
        shared, alone = both(service, root)
        assert shared == alone
        assert shared[3] == ["f0", "f30", "f59"]

    from ollm.config.settings import FileDiscoverySettings

    as_ordinary_user(body)


def test_links_are_followed_by_one_alone(service: FileDiscoveryService, root: Path, asked: list[int]) -> None:
    """The first way to a directory counts, so the order in which they are read matters."""
    wide(root)
    for number in range(0, 60, 2):
        (root / f"f{number}" / "g0" / "link").symlink_to(root / f"f{59 - number}")
    shared, alone = both(service, root, follow_symlinks=True)
    assert shared == alone
    assert not asked


async def test_a_small_tree_needs_no_other(service: FileDiscoveryService, root: Path, asked: list[int]) -> None:
    wide(root, folders=20)
    await service.discover_all(DiscoveryOptions(root=str(root)))
    assert not asked


async def test_a_large_one_is_shared(service: FileDiscoveryService, root: Path, asked: list[int]) -> None:
    wide(root, folders=200)
    entries = await service.discover_all(DiscoveryOptions(root=str(root)))
    assert len(asked) > 2
    assert [entry.relative_path for entry in entries] == [
        entry.relative_path
        async for entry in FileDiscoveryService(service._settings, root).discover(DiscoveryOptions(root=str(root)))
    ]
