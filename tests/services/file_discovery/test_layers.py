"""Ignore rules: read once for a directory, and memory that does not grow with the project."""

import os
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import files, plant
from tests.services.file_discovery.test_cache import make_old

_listening: list[list[str]] = []


def _note_open(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _listening and isinstance(arguments[0], str | bytes):
        _listening[-1].append(os.fsdecode(arguments[0]))


sys.addaudithook(_note_open)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Every file that is opened inside, by name."""
    _listening.append([])
    try:
        yield _listening[-1]
    finally:
        _listening.pop()


@covers("D334")
async def test_the_rules_of_a_directory_are_read_once(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept", "sub/kept", "sub/left.log", "left.log")
    (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (root / "sub" / ".gitignore").write_text("!kept\n", encoding="utf-8")
    for path in (root / ".gitignore", root / "sub" / ".gitignore"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    make_old(root)

    with opened_files() as first:
        found = await files(service, root)
    with opened_files() as second:
        again = await files(service, root)

    assert found == again == {"kept", "sub/kept", ".gitignore", "sub/.gitignore"}
    assert len([name for name in first if name.endswith(".gitignore")]) == 2
    assert [name for name in second if name.endswith(".gitignore")] == []


@covers("D335")
async def test_going_through_a_large_project_keeps_no_entry_of_it(service: FileDiscoveryService, root: Path) -> None:
    plant(root, *(f"{folder}/{number}" for folder in range(60) for number in range(100)))

    tracemalloc.start()
    try:
        count = 0
        async for _ in service.discover(DiscoveryOptions(root=str(root))):
            count += 1
        streamed = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 6000
    assert streamed < 6000 * 163  # bytes: what a list of all entries takes
