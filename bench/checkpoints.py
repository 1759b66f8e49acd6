"""What a turn that changes files costs in checkpoints, beside `git add -A` into a shadow repository: processor time of
the two looks at the tree (before the first change, and at the end), ten files changed in between."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.row import Row
from ollm.config.settings import CheckpointSettings, FileDiscoverySettings
from ollm.domain.clock import now
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import CheckpointPlace
from ollm.services.file_discovery.service import FileDiscoveryService

FILE_COUNTS = (1_000, 10_000, 100_000)
CHANGED_FILES = 10
FILES_PER_FOLDER = 20
TURNS = 3
MEMORY = Path("/dev/shm")
SESSION = "11111111-1111-4111-8111-111111111111"


def rows() -> Iterable[Row]:
    for count in FILE_COUNTS:
        with tempfile.TemporaryDirectory(dir=find_memory_place()) as place:
            yield from measure(Path(place).resolve(), count)


def find_memory_place() -> str | None:
    """Files in memory where the system has that: a disk that others use would decide how long it takes."""
    return str(MEMORY) if os.access(MEMORY, os.W_OK) else None


def measure(place: Path, count: int) -> Iterable[Row]:
    root = place / "project"
    fill(root, count)
    ours, git = make_ours(place, root), make_git(place, root)
    first = cpu_seconds(ours), cpu_seconds(git)
    taken = []
    for turn in range(TURNS):
        time.sleep(0.05)  # files of the last turn are older than a tick of the clock, as in a real one
        ours_begin, git_begin = cpu_seconds(ours), cpu_seconds(git)
        for number in range(CHANGED_FILES):
            find_path(root, (number * 97 + turn) % count).write_text(f"changed {turn} {number}\n")
        taken.append((ours_begin + cpu_seconds(ours), git_begin + cpu_seconds(git)))
    a, b = (statistics.median(column) for column in zip(*taken, strict=True))
    yield Row(f"a turn, {count:,} files", a * 1000, b * 1000, None, "ms of CPU", note="against git add -A, twice")
    yield Row(
        f"the first time, {count:,} files", first[0] * 1000, first[1] * 1000, None, "ms of CPU", note="git add -A"
    )


def make_ours(place: Path, root: Path) -> Callable[[], object]:
    discovery = FileDiscoveryService(FileDiscoverySettings(), place / "home")
    where = CheckpointPlace(root=root, folder=place / "saved", user_home=place / "home")
    settings = CheckpointSettings(max_files=10**6)
    checkpoints = FileCheckpoints(where, settings, discovery.scan_tree, now)
    numbers = iter(range(10**6))

    def take() -> None:
        if checkpoints.begun:
            checkpoints.end()
        else:
            checkpoints.begin(SESSION, next(numbers))

    return take


def make_git(place: Path, root: Path) -> Callable[[], object]:
    environment = {**os.environ, "GIT_DIR": str(place / "shadow"), "GIT_WORK_TREE": str(root)}
    subprocess.run(["git", "init", "-q"], env=environment, check=True)
    return lambda: subprocess.run(["git", "add", "-A"], env=environment, cwd=root, check=True, capture_output=True)


def cpu_seconds(action: Callable[[], object]) -> float:
    before = sum(os.times()[:4])
    action()
    return sum(os.times()[:4]) - before


def fill(root: Path, count: int) -> None:
    for number in range(count):
        path = find_path(root, number)
        if number % FILES_PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {number}\n" * 40)


def find_path(root: Path, number: int) -> Path:
    folder = number // FILES_PER_FOLDER
    return root / f"pkg{folder % 20}" / f"mod{folder}" / f"file{number}.py"
