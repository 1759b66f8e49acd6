"""Walks over trees, with faults, and fuzzy matches."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - an ordinary user may not read where it is installed
import logging
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery.fuzzy import PathFinder
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
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


@covers("S10.4")
def test_a_directory_that_may_not_be_read_is_skipped_and_told() -> None:
    def body(home: Path) -> None:
        root = home / "root"
        plant(root, "open/a", "shut/b", "listed/c", "z")
        (root / "shut").chmod(0o000)
        (root / "listed").chmod(0o400)
        service = FileDiscoveryService(FileDiscoverySettings(), home)

        answer = asyncio.run(service.collect_result(DiscoveryOptions(root=str(root), stat=True)))

        assert {entry.relative_path for entry in answer.entries} == {"z", "listed/c", "open/a"}
        assert answer.unreadable == ("shut",)

    as_ordinary_user(body)


@covers("S10.4")
def test_an_ignore_file_that_may_not_be_read_counts_as_empty() -> None:
    def body(home: Path) -> None:
        root = home / "root"
        plant(root, "a")
        rules(root, ".gitignore", "a")
        (root / ".gitignore").chmod(0)

        assert asyncio.run(files(FileDiscoveryService(FileDiscoverySettings(), home), root)) == {"a", ".gitignore"}

    as_ordinary_user(body)


def test_a_root_that_may_not_be_read_is_empty_and_told() -> None:
    def body(home: Path) -> None:
        root = home / "root"
        plant(root, "a")
        root.chmod(0)
        service = FileDiscoveryService(FileDiscoverySettings(), home)

        answer = asyncio.run(service.collect_result(DiscoveryOptions(root=str(root))))

        assert (answer.entries, answer.unreadable) == ((), (".",))

    as_ordinary_user(body)


@covers("D624", "D624")
async def test_a_rule_that_cannot_be_read_is_skipped_with_file_and_line(
    service: FileDiscoveryService, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plant(root, "a.log", "b.txt", "sub/c.tmp")
    rules(root, ".gitignore", "*.log", "[unclosed", "*.txt")
    rules(root, "sub/.ollmignore", "[[:nonsense:]]", "*.tmp")

    with caplog.at_level(logging.WARNING):
        found = await files(service, root)
        await files(service, root, hidden=False)

    assert found == {".gitignore", "sub/.ollmignore"}
    told = [(bad.source, bad.line, bad.text) for bad in service.list_bad_rules()]
    assert told == [(".gitignore", 2, "[unclosed"), ("sub/.ollmignore", 1, "[[:nonsense:]]")]
    assert len([record for record in caplog.records if ".gitignore:2" in record.getMessage()]) == 1


async def test_names_that_are_not_text_are_found_and_matched(service: FileDiscoveryService, root: Path) -> None:
    for name in (b"latin-\xe9", b"\xff\xfe", b"new\nline", b"\x1b[31m"):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).touch()
    (root / os.fsdecode(b"dir\xe9")).mkdir()
    (root / os.fsdecode(b"dir\xe9") / "a.log").touch()
    (root / ".gitignore").write_bytes(b"*.log\n\xff*\n")

    found = {os.fsencode(path) for path in await files(service, root)}

    assert found == {b"latin-\xe9", b"new\nline", b"\x1b[31m", b".gitignore"}


async def test_thousands_of_files_in_one_directory(service: FileDiscoveryService, root: Path) -> None:
    (root / "full").mkdir()
    for number in range(3_000):
        (root / "full" / str(number)).touch()

    assert len(await files(service, root)) == 3_000


async def test_files_that_vanish_meanwhile_do_no_harm(service: FileDiscoveryService, root: Path) -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            plant(root, "x/y/z", "x/a", "b/c")
            shutil.rmtree(root / "x", ignore_errors=True)
            shutil.rmtree(root / "b", ignore_errors=True)

    plant(root, "stays")
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            assert "stays" in await files(service, root, stat=True, directories=True)
    finally:
        stop.set()
        thread.join()


async def test_without_git_the_rules_are_the_same(
    service: FileDiscoveryService, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    plant(root, "a.log", "b")
    rules(root, ".gitignore", "*.log")
    monkeypatch.setenv("PATH", "/nonexistent")

    assert await files(service, root) == {"b", ".gitignore"}


async def test_a_git_file_that_points_nowhere_does_no_harm(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a", "inner/b")
    (root / ".git").write_text("gitdir: /nowhere/at/all\n")
    (root / "inner" / ".git").write_bytes(b"\xff\x00 nonsense")

    assert await files(service, root) == {"a", "inner/b"}


PATHS = [
    "src/services/file_discovery/walk.py",
    "src/services/file_discovery/watch.py",
    "src/tools/grep.py",
    "tests/tools/test_grep.py",
    "docs/grep.py.md",
    "README.md",
    "src/Main.java",
]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("grep.py", "src/tools/grep.py"),
        ("grep", "docs/grep.py.md"),
        ("tools/grep", "src/tools/grep.py"),
        ("readme", "README.md"),
        ("main.JAVA", "src/Main.java"),
        ("sfdwa", "src/services/file_discovery/walk.py"),
        ("wlak.py", "src/services/file_discovery/walk.py"),
        ("./README", "README.md"),
        ("", "README.md"),
    ],
)
def test_the_likeliest_path_comes_first(typed: str, first: str) -> None:
    assert PathFinder(PATHS).find_best(typed)[0] == first


def test_nothing_alike_gives_nothing() -> None:
    assert PathFinder(PATHS).find_best("zzzzzz") == []
    assert PathFinder([]).find_best("a") == []


@given(
    st.lists(st.text("ab/.é\udce9", min_size=1, max_size=8), max_size=20),
    st.text("ab/é", max_size=5),
    st.integers(1, 5),
)
def test_paths_come_once_and_no_more_than_asked_for(paths: list[str], typed: str, limit: int) -> None:
    best = PathFinder(sorted(set(paths))).find_best(typed, limit)

    assert len(best) == len(set(best)) <= limit
    assert set(best) <= set(paths)
    holding = [path for path in set(paths) if typed.strip().removeprefix("./") in path]
    assert len(best) >= min(limit, len(holding))


@given(
    st.lists(st.text("abc/.é", min_size=1, max_size=8), max_size=20),
    st.lists(st.text("abc/é", max_size=5), max_size=6),
)
def test_what_was_asked_before_changes_no_answer(paths: list[str], asked: list[str]) -> None:
    finder = PathFinder(paths)
    for word in asked:
        for end in range(len(word) + 1):
            assert finder.find_best(word[:end]) == PathFinder(paths).find_best(word[:end])


def test_a_hundred_thousand_paths_keep_up_with_typing() -> None:
    rng = random.Random(1)
    words = ["alpha", "beta", "file", "test", "core", "util", "main", "index", "view", "model"]
    paths = ["/".join(f"{rng.choice(words)}{rng.randrange(40)}" for _ in range(4)) + ".py" for _ in range(100_000)]
    finder = PathFinder(paths)
    finder.find_best("warm")
    taken = []
    for typed in ("m", "mo", "mod", "mode", "model", "model3", "model3/", "model3/f", "mdl3fl", "modle33"):
        start = time.thread_time()
        assert finder.find_best(typed)
        taken.append(time.thread_time() - start)

    assert sorted(taken)[len(taken) // 2] < 0.3
