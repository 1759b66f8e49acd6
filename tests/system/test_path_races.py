"""A link that is swapped in between the check and the opening does not get out."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.system.paths import Boundary
from tests.covers import covers
from tests.sizes import size

SWAPPER = """
import os, shutil, sys
name, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    try:
        os.symlink(outside, name + ".link")
        os.rename(name, name + ".real")
        os.rename(name + ".link", name)
        os.unlink(name)
        os.rename(name + ".real", name)
    except OSError:  # a directory was made anew in the gap: away with it
        for left in (name + ".link", name):
            if os.path.islink(left):
                os.unlink(left)
        if os.path.lexists(name + ".real"):
            shutil.rmtree(name, ignore_errors=True)
            if not os.path.lexists(name):
                os.rename(name + ".real", name)
"""


@contextmanager
def swapping(inside: Path, outside: Path) -> Iterator[None]:
    """Another process keeps putting a link to `outside` where `inside` stands, and back."""
    arguments = [sys.executable, "-c", SWAPPER, str(inside), str(outside)]
    swapper = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        yield
        assert swapper.poll() is None, "the race was over before the end"
    finally:
        swapper.kill()
        swapper.communicate()


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "dir").mkdir(parents=True)
    outside.mkdir()
    (work / "dir" / "file").write_text("inside")
    (outside / "file").write_text("secret")
    return work, outside


def read_once(boundary: Boundary) -> bytes:
    try:
        with boundary.open_file("dir/file") as file:
            return file.read()
    except ToolFailure as error:
        return error.kind.encode()


@covers("T3.8")
@pytest.mark.soak
@pytest.mark.parametrize("swapped", ["dir", "dir/file"])
def test_reading_never_gets_out_while_links_are_swapped(places: tuple[Path, Path], swapped: str) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    outcomes = set()
    with swapping(work / swapped, outside if swapped == "dir" else outside / "file"):
        for _ in range(size(1_000, 100_000)):
            outcomes.add(read_once(boundary))
        deadline = time.monotonic() + 120
        while b"inside" not in outcomes and time.monotonic() < deadline:  # the swapper was halted in its gap
            time.sleep(0.001)
            outcomes.add(read_once(boundary))

    assert b"inside" in outcomes
    assert b"secret" not in outcomes
    assert outcomes <= {b"inside", b"OutsideWorkspace", b"FileNotFound", b"FileChanged"}


@covers("T3.8")
@pytest.mark.soak
@pytest.mark.parametrize("swapped", ["dir", "dir/file"])
def test_writing_never_gets_out_while_links_are_swapped(places: tuple[Path, Path], swapped: str) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    kinds = set()
    with swapping(work / swapped, outside if swapped == "dir" else outside / "file"):
        for number in range(size(200, 20_000)):
            try:
                boundary.write_file("dir/file" if number % 2 else f"dir/new-{number}", b"written")
            except ToolFailure as error:
                kinds.add(error.kind)

    assert kinds <= {"OutsideWorkspace", "FileNotFound", "FileChanged", "FileExists", "IsDirectory"}
    assert [item.name for item in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "secret"


@covers("T3.8")
@pytest.mark.soak
def test_removing_never_gets_out_while_links_are_swapped(places: tuple[Path, Path]) -> None:
    work, outside = places
    boundary = Boundary.around(work)
    with swapping(work / "dir", outside):
        for _ in range(size(500, 20_000)):
            try:
                boundary.remove_file("dir/file")
            except ToolFailure:
                continue

    assert (outside / "file").read_text() == "secret"
