"""Maps of code: how long they take, and how many of the files a commit touched stand in a map ranked for its subject.

For the hit rate, the last 50 commits of this repository that change one to five files are taken, each at the tree of
its parent, and the map is given the subject alone. A file that the commit adds cannot be on a map, and is not counted.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.row import Row
from ollm.config.settings import CodeMapSettings
from ollm.services.code_map.facts import FileFacts, collect_facts
from ollm.services.code_map.languages import belongs_on_map
from ollm.services.code_map.service import CodeMapService, render_code_map
from ollm.services.token_counting import TokenCounter

ROOT = Path(__file__).parents[1]
COMMITS = 50
MOST_FILES = 5
MAP_TOKENS = 2000
MOST_MISSED = 0.30


def rows() -> Iterable[Row]:
    yield from map_times()
    missed = [one.missed / one.touched for one in hits() if one.touched]
    files = sum(one.touched for one in hits())
    lost = sum(one.missed for one in hits())
    note = f"{files - lost} of {files} files of {len(missed)} commits are on it"
    yield Row(
        f"files missed by a map of {MAP_TOKENS:,} tokens", 100 * lost / files, None, 100 * MOST_MISSED, "%", note=note
    )


def map_times() -> Iterable[Row]:
    paths = git("ls-files").split("\n")
    with tempfile.TemporaryDirectory() as place:
        service = CodeMapService(CodeMapSettings(), Path(place))

        def draw() -> float:
            begin = time.perf_counter()
            asyncio.run(service.build_map(ROOT, paths, None, TokenCounter().count_text))
            return time.perf_counter() - begin

        cold, warm = draw(), min(draw() for _ in range(3))
    count = sum(map(belongs_on_map, paths))
    yield Row(f"map of {count:,} files, cold", cold, unit="s")
    yield Row(f"map of {count:,} files, warm", warm, unit="s")


class Hit:
    """One commit: the files it touched that were there before, and those the map lacks."""

    def __init__(self, subject: str, touched: list[str], shown: set[str]) -> None:
        self.subject = subject
        self.lost = [path for path in touched if path not in shown]
        self.touched = len(touched)
        self.missed = len(self.lost)


_HITS: list[Hit] = []


def hits() -> list[Hit]:
    if not _HITS:
        _HITS.extend(measure_hits())
    return _HITS


def measure_hits(revision: str = "HEAD") -> Iterable[Hit]:
    facts, taken = Facts(), 0
    for commit in git("rev-list", "--no-merges", revision).split():
        changed = git("diff-tree", "--no-commit-id", "--name-only", "-r", commit).split("\n")
        changed = [path for path in changed if path]
        if not 1 <= len(changed) <= MOST_FILES:
            continue
        subject, tree = git("log", "-1", "--format=%s", commit).strip(), facts.read_tree(f"{commit}^")
        text = render_code_map(list(tree.values()), MAP_TOKENS, TokenCounter().count_text, subject)
        touched = [path for path in changed if path in facts.known_paths]
        if touched:
            shown = set(text.split("\n"))
            yield Hit(subject, touched, {path for path in touched if path in read_paths(shown, touched)})
            taken += 1
        if taken == COMMITS:
            return


def read_paths(lines: set[str], wanted: list[str]) -> set[str]:
    """Which of the paths a map names, whether a line each or several of a directory on one."""
    found = set()
    for path in wanted:
        folder, _, name = path.rpartition("/")
        folder = folder or "."
        for line in lines:
            if line == path or (line.startswith(f"{folder}/: ") and name in line.partition(": ")[2].split(" ")):
                found.add(path)
    return found


class Facts:
    """Facts of files by their blobs, so that a file is read once for all commits it is the same in."""

    def __init__(self) -> None:
        self._by_blob: dict[tuple[str, str], FileFacts] = {}
        self.known_paths: set[str] = set()

    def read_tree(self, revision: str) -> dict[str, FileFacts]:
        listed = [line.split("\t", 1) for line in git("ls-tree", "-r", revision).split("\n") if line]
        blobs = {path: entry.split()[2] for entry, path in listed}
        self.known_paths = set(blobs)
        missing = [
            (path, blob) for path, blob in blobs.items() if belongs_on_map(path) and (path, blob) not in self._by_blob
        ]
        for (path, blob), data in zip(missing, read_blobs([blob for _, blob in missing]), strict=True):
            self._by_blob[path, blob] = collect_facts(path, data, 0, len(data))
        return {path: self._by_blob[path, blob] for path, blob in blobs.items() if (path, blob) in self._by_blob}


def read_blobs(blobs: list[str]) -> Iterable[bytes]:
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    data = subprocess.run(["git", "cat-file", "--batch"], cwd=ROOT, input=asked, capture_output=True, check=True).stdout
    place = 0
    for _ in blobs:
        end = data.index(b"\n", place)
        size = int(data[place:end].split()[2])
        yield data[end + 1 : end + 1 + size]
        place = end + size + 2


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for one in measure_hits():
        print(f"{one.touched - one.missed}/{one.touched} {one.subject[:90]}  {' '.join(one.lost)}")
