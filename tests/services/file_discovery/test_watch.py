"""A watch reports what happens to the files that are shown."""

import asyncio
import os
import resource
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm import FileDiscoveryService
from ollm.config.settings import FileDiscoverySettings
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import plant, rules

SECONDS = 10.0


class Heard:
    """Remembers what a watch says, and waits for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.changes: list[tuple[str, str]] = []
        self._more = threading.Condition()

    def __call__(self, kind: str, path: str) -> None:
        with self._more:
            self.changes.append((kind, str(Path(path).relative_to(self.root))))
            self._more.notify_all()

    def wait_for(self, *expected: tuple[str, str]) -> None:
        with self._more:
            came = self._more.wait_for(lambda: set(expected) <= set(self.changes), SECONDS)
        assert came, f"heard {self.changes}, not {expected}"

    def wait_for_count(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.changes) >= count, 3 * SECONDS), len(self.changes)

    def settle(self, *expected: tuple[str, str]) -> list[tuple[str, str]]:
        """Wait for what is expected and then for two marks, one after the other: what was told together with the first
        has been heard when the second comes."""
        self.wait_for(*expected)
        for _ in range(2):
            mark = f"mark-{time.monotonic_ns()}"
            (self.root / mark).touch()
            self.wait_for(("add", mark))
        return sorted(change for change in self.changes if not change[1].startswith("mark-"))


@pytest.fixture
def watch(service: FileDiscoveryService, root: Path) -> Iterator[Callable[[], Heard]]:
    def start() -> Heard:
        heard = Heard(root)
        service.watch_changes(str(root), heard)
        return heard

    yield start
    service.close()


@covers("S6.7", "S6.8")
def test_add_change_and_unlink_are_heard(watch: Callable[[], Heard], root: Path) -> None:
    plant(root, "old.txt", "gone.txt", "sub/deep.txt")
    heard = watch()

    (root / "new.txt").write_text("new")
    (root / "old.txt").write_text("something longer")
    (root / "gone.txt").unlink()
    (root / "sub" / "deep.txt").write_text("something longer")

    expected = [("add", "new.txt"), ("change", "old.txt"), ("change", "sub/deep.txt"), ("unlink", "gone.txt")]
    assert heard.settle(*expected) == expected


def test_a_new_directory_is_heard_with_what_is_inside(watch: Callable[[], Heard], root: Path, tmp_path: Path) -> None:
    plant(tmp_path, "ready/a.txt", "ready/b/c.txt")
    heard = watch()

    (tmp_path / "ready").rename(root / "moved")
    heard.wait_for(("add", "moved/a.txt"), ("add", "moved/b/c.txt"))
    (root / "moved" / "b" / "later.txt").touch()
    plant(root, "made/by/hand.txt")

    expected = [
        ("add", "made/by/hand.txt"),
        ("add", "moved/a.txt"),
        ("add", "moved/b/c.txt"),
        ("add", "moved/b/later.txt"),
    ]
    assert heard.settle(*expected) == expected


def test_a_rename_is_an_unlink_and_an_add(watch: Callable[[], Heard], root: Path) -> None:
    plant(root, "a.txt", "folder/b.txt")
    heard = watch()

    (root / "a.txt").rename(root / "z.txt")
    (root / "folder").rename(root / "other")

    expected = [("add", "other/b.txt"), ("add", "z.txt"), ("unlink", "a.txt"), ("unlink", "folder/b.txt")]
    assert heard.settle(*expected) == expected


def test_ignored_paths_are_silent(watch: Callable[[], Heard], root: Path) -> None:
    plant(root, "node_modules/x.js", "kept.txt")
    rules(root, ".gitignore", "*.log", "out/")
    heard = watch()

    plant(root, "node_modules/y.js", "a.log", "out/b.txt", "new/node_modules/z.js", "dist/bundle.js")
    (root / "node_modules" / "x.js").unlink()

    assert heard.settle() == []


def test_an_ignore_file_that_changes_takes_effect(watch: Callable[[], Heard], root: Path) -> None:
    plant(root, "a.log", "b.txt")
    rules(root, ".gitignore", "*.txt")
    heard = watch()

    rules(root, ".gitignore", "*.log", "# longer")
    heard.wait_for(("change", ".gitignore"), ("add", "b.txt"))
    (root / "a.log").write_text("now ignored")
    (root / "b.txt").write_text("no longer ignored")

    assert heard.settle(("change", "b.txt")) == [("add", "b.txt"), ("change", ".gitignore"), ("change", "b.txt")]


def test_what_comes_and_goes_at_once_is_no_news_and_a_replaced_file_is_a_change(
    watch: Callable[[], Heard], root: Path
) -> None:
    plant(root, "saved.txt")
    heard = watch()

    for number in range(20):
        (root / f"short-lived-{number}").touch()
        (root / f"short-lived-{number}").unlink()
    (root / "saved.tmp").write_text("as editors do")
    (root / "saved.tmp").replace(root / "saved.txt")

    came = [change for change in heard.settle(("change", "saved.txt")) if change[1] == "saved.txt"]
    assert came == [("change", "saved.txt")]


def test_names_that_are_not_text_are_heard(watch: Callable[[], Heard], root: Path) -> None:
    heard = watch()
    odd = os.fsdecode(b"latin-\xe9")

    (root / odd).write_text("x")
    heard.wait_for(("add", odd))
    (root / "plain").write_text("x")

    heard.wait_for(("add", "plain"))


def test_a_flood_of_changes_is_heard_to_the_last(watch: Callable[[], Heard], root: Path) -> None:
    heard = watch()

    for number in range(6000):
        (root / str(number)).touch()

    heard.wait_for_count(6000)
    assert set(heard.changes) == {("add", str(number)) for number in range(6000)}


@covers("P24", "S6.8")
@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["write", "remove"]), st.sampled_from(["a", "b", "d/c", "d/e/f", "é", "x y"])),
        min_size=1,
        max_size=6,
    )
)
def test_what_was_heard_adds_up_to_what_happened(steps: list[tuple[str, str]], arena: "Arena") -> None:
    """Feature: services-sessions, Property 24: a change calls back with the right kind and path."""
    arena.clear()
    before = {path: (arena.root / path).read_text() for path in arena.present()}
    heard = arena.heard
    heard.changes.clear()

    for number, (step, path) in enumerate(steps):
        target = arena.root / path
        if step == "write":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("x" * (number + 100))
        else:
            target.unlink(missing_ok=True)

    after = arena.present()
    changes = heard.settle()
    assert {path for path in after if path not in before} == net(changes, "add", "unlink")
    assert {path for path in before if path not in after} == net(changes, "unlink", "add")
    written = {path for step, path in steps if step == "write"}
    assert {path for kind, path in changes if kind == "change"} <= written
    assert all(path in {p for k, p in changes if k in ("change", "add")} for path in written & after)


def net(changes: list[tuple[str, str]], kind: str, undone_by: str) -> set[str]:
    came = [path for what, path in changes if what == kind]
    went = [path for what, path in changes if what == undone_by]
    return {path for path in came if came.count(path) > went.count(path)}


class Arena:
    """One watched directory for many examples, half full at the start of each."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.service = FileDiscoveryService(FileDiscoverySettings(), home)
        self.heard = Heard(root)
        root.mkdir()
        self.service.watch_changes(str(root), self.heard)

    def present(self) -> set[str]:
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file() and not path.name.startswith("mark-")
        }

    def clear(self) -> None:
        for path in [*self.root.iterdir()]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        plant(self.root, "a", "d/c")
        self.heard.settle()
        self.heard.changes.clear()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    made = Arena(tmp_path_factory.mktemp("watched") / "root", tmp_path_factory.mktemp("home"))
    yield made
    made.service.close()


def test_a_callback_that_fails_does_not_end_the_watch(service: FileDiscoveryService, root: Path) -> None:
    heard = Heard(root)

    def broken(kind: str, path: str) -> None:
        raise ValueError("broken")

    service.watch_changes(str(root), broken)
    service.watch_changes(str(root), heard)
    (root / "a").touch()
    heard.wait_for(("add", "a"))
    (root / "b").touch()

    heard.wait_for(("add", "b"))


def test_a_root_that_is_removed_is_heard_and_harmless(watch: Callable[[], Heard], root: Path) -> None:
    plant(root, "a", "b/c")
    heard = watch()

    shutil.rmtree(root)

    heard.wait_for(("unlink", "a"), ("unlink", "b/c"))


def test_without_descriptors_to_watch_with_it_looks_every_now_and_then() -> None:
    def body(home: Path) -> None:
        root = home / "root"
        root.mkdir()
        service = FileDiscoveryService(FileDiscoverySettings(), home)
        heard = Heard(root)
        with no_descriptors():
            subscription = service.watch_changes(str(root), heard)
        (root / "a").touch()
        heard.wait_for(("add", "a"))
        (root / "a").write_text("longer")
        heard.wait_for(("change", "a"))
        subscription.dispose()

    as_ordinary_user(body)


class no_descriptors:  # noqa: N801 - reads as a sentence
    """Inside, the process can open a handful of files for its own work, but no new watch."""

    def __enter__(self) -> None:
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.open(os.devnull, os.O_RDONLY)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, self.limits[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)


def test_an_event_comes_within_a_tenth_of_a_second(watch: Callable[[], Heard], root: Path) -> None:
    heard = watch()
    delays = []
    for number in range(10):
        start = time.monotonic()
        (root / str(number)).touch()
        heard.wait_for(("add", str(number)))
        delays.append(time.monotonic() - start)

    assert min(delays) < 0.3


@covers("D317")
def test_watchers_of_one_root_end_one_by_one_and_leave_no_thread(service: FileDiscoveryService, root: Path) -> None:
    before = set(threading.enumerate())
    early, late = Heard(root), Heard(root)

    subscription = service.watch_changes(str(root), early)
    other = service.watch_changes(str(root), late)
    (root / "a").touch()
    for heard in (early, late):
        heard.wait_for(("add", "a"))
    subscription.dispose()
    subscription.dispose()
    (root / "b").touch()
    late.wait_for(("add", "b"))
    other.dispose()

    assert early.changes == [("add", "a")]
    assert set(threading.enumerate()) <= before


async def test_callbacks_run_in_the_loop_that_asked(service: FileDiscoveryService, root: Path) -> None:
    came: asyncio.Queue[tuple[str, str, int]] = asyncio.Queue()
    subscription = service.watch_changes(
        str(root), lambda kind, path: came.put_nowait((kind, path, threading.get_ident()))
    )

    (root / "a").touch()

    assert await asyncio.wait_for(came.get(), SECONDS) == ("add", str(root / "a"), threading.get_ident())
    subscription.dispose()


def test_a_callback_of_a_loop_that_is_over_is_not_called(service: FileDiscoveryService, root: Path) -> None:
    late: list[str] = []

    async def listen() -> None:
        service.watch_changes(str(root), lambda kind, path: late.append(path))

    asyncio.run(listen())
    heard = Heard(root)
    service.watch_changes(str(root), heard)
    (root / "a").touch()
    heard.wait_for(("add", "a"))

    assert late == []
