"""File system stamps of every session, so that only changed ones are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ollm.store.session_files.places import is_id, make_unreadable_error

Progress = Callable[[int, int], None]  # It gets what is done, and all there is.
_ENDS = {".json": 0, ".journal": 1}
ID_LENGTH = 36
BATCH_BYTES = 8_000_000
LARGE_BYTES = 64_000_000  # A larger session may be indexed in several runs.


class Stamp(NamedTuple):
    """Inode, size and time of document and journal; `text` is their form in the index."""

    directory: Path
    document: tuple[int, int, int] | None
    journal: tuple[int, int, int] | None

    @property
    def text(self) -> str:
        return f"{self.directory.name}/{_format_stat(self.document)}|{_format_stat(self.journal)}"

    @property
    def size(self) -> int:
        return sum(part[1] for part in (self.document, self.journal) if part)

    @property
    def is_large(self) -> bool:
        return self.size > LARGE_BYTES

    @property
    def newest_time(self) -> int:
        return max((part[2] for part in (self.document, self.journal) if part), default=0)


def read_stamp(directory: Path, session_id: str) -> Stamp | None:
    """Read one session's stamp, without looking at the others."""
    both = [_read_stat(directory / f"{session_id}{end}") for end in _ENDS]
    return Stamp(directory, both[0], both[1]) if any(both) else None


def make_batches(names: list[str], found: dict[str, Stamp]) -> Iterator[list[str]]:
    """Split the sessions, in order, into batches of about `BATCH_BYTES`. A large session is alone."""
    batch: list[str] = []
    size = 0
    for name in names:
        size += found[name].size
        if batch and size > BATCH_BYTES:
            yield batch
            batch, size = [], found[name].size
        batch.append(name)
    if batch:
        yield batch


def read_stamps(directory: Path) -> tuple[dict[str, Stamp], set[str]]:
    """Read every session's stamp, and the ids with a lock file."""
    parts: dict[str, list[tuple[int, int, int] | None]] = {}
    locked: set[str] = set()
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return {}, set()
    except OSError as error:
        raise make_unreadable_error(directory, error) from error
    for entry in entries:
        stem, end = entry.name[:ID_LENGTH], entry.name[ID_LENGTH:]
        if end == ".lock":
            locked.add(stem)
        elif end in _ENDS and is_id(stem) and (stat := _read_stat(entry)):  # It may be gone by now.
            parts.setdefault(stem, [None, None])[_ENDS[end]] = stat
    return {stem: Stamp(directory, both[0], both[1]) for stem, both in parts.items()}, locked


def _read_stat(file: Path | os.DirEntry[str]) -> tuple[int, int, int] | None:
    try:
        stat = file.stat(follow_symlinks=False)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _format_stat(stat: tuple[int, int, int] | None) -> str:
    return "-" if stat is None else f"{stat[0]},{stat[1]},{stat[2]}"
