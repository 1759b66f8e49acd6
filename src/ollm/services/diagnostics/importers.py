"""Search for the files that import a file, by the lines that name it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_READ_FILES = 3_000
MAX_READ_BYTES = 256 * 1024
MAX_IMPORTERS = 5
IMPORT_WORDS = frozenset(("import", "from", "require", "include", "use", "source"))
WORDS = re.compile(r"[\w-]+")
PACKAGE_FILES = ("__init__", "index", "mod", "lib")  # named by their folder


def find_importers(path: Path, candidates: Sequence[Path]) -> dict[Path, str]:
    """Find a few files that import this one, with their texts; those in folders nearby first."""
    name = path.parent.name if path.stem in PACKAGE_FILES else path.stem
    near = sorted(candidates[:MAX_READ_FILES], key=lambda each: _measure_distance(path, each))
    found: dict[Path, str] = {}
    for each, text in _read_texts(path, near):
        lines = (set(WORDS.findall(line)) for line in text.splitlines() if name in line)
        if any(name in words and words & IMPORT_WORDS for words in lines):
            found[each] = text
            if len(found) == MAX_IMPORTERS:
                break
    return found


def _measure_distance(path: Path, other: Path) -> int:
    return len(os.path.relpath(other, path.parent).split("/"))


def _read_texts(path: Path, candidates: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    for each in candidates:
        try:
            if each != path and each.stat().st_size <= MAX_READ_BYTES:
                yield each, each.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
