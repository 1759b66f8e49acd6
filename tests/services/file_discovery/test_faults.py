"""What goes wrong is skipped or told, never a crash (S10.4, D's error handling)."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - an ordinary user may not read where it is installed
import logging
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import files, plant, rules


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


async def test_ten_thousand_files_in_one_directory(service: FileDiscoveryService, root: Path) -> None:
    (root / "full").mkdir()
    for number in range(10_000):
        (root / "full" / str(number)).touch()

    assert len(await files(service, root)) == 10_000


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
