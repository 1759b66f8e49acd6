"""File system stamps of every session, so that only changed ones are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ENDS = {".json": 0, ".journal": 1}
ID_LENGTH = 36
BATCH_BYTES = 8_000_000
LARGE_BYTES = 64_000_000  # a session from here on is not read to its end in one go
_HEXADECIMAL = dict.fromkeys(map(ord, "0123456789abcdef-"))


class Stamp(NamedTuple):
    """Inode, size and time of document and journal; `text` is their form in the index."""

    directory: Path
    document: tuple[int, int, int] | None
    journal: tuple[int, int, int] | None

    @property
    def text(self) -> str:
        return f"{self.document_text}|{_format_stat(self.journal)}"

    @property
    def document_text(self) -> str:
        return f"{self.directory.name}/{_format_stat(self.document)}"

    @property
    def size(self) -> int:
        return sum(part[1] for part in (self.document, self.journal) if part)

    @property
    def is_large(self) -> bool:
        return self.size > LARGE_BYTES

    @property
    def newest_time(self) -> int:
        return max((part[2] for part in (self.document, self.journal) if part), default=0)

    def has_only_grown_since(self, known: str) -> bool:
        """Return True if at most the journal differs from the stored text, and has not become shorter."""
        document, _, journal = known.partition("|")
        inode, size, _ = (*journal.split(","), "0", "0")[:3]
        is_same = self.journal and inode == str(self.journal[0]) and int(size) <= self.journal[1]
        return document == self.document_text and bool(is_same or journal in ("-", _format_stat(self.journal)))


def read_stamp(directory: Path, session_id: str) -> Stamp | None:
    """Read one session's stamp, without looking at the others."""
    both = [_read_stat(directory / f"{session_id}{end}") for end in _ENDS]
    return Stamp(directory, both[0], both[1]) if any(both) else None


def make_batches(names: list[str], found: dict[str, Stamp]) -> Iterator[list[str]]:
    """Split the sessions, in order, into batches of about `BATCH_BYTES`; a large session ends its batch."""
    batch: list[str] = []
    size = 0
    for name in names:
        if batch and size + found[name].size > LARGE_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += found[name].size
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_stat(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.lstat()
    except OSError:
        return None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def read_stamps(directory: Path) -> tuple[dict[str, Stamp], set[str]]:
    """Read every session's stamp, and the ids with a lock file."""
    parts: dict[str, list[tuple[int, int, int] | None]] = {}
    locked: set[str] = set()
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return {}, set()
    except OSError as error:
        from ollm.store.session_files.places import make_unreadable_error

        raise make_unreadable_error(directory, error) from error
    for entry in entries:
        stem, end = entry.name[:ID_LENGTH], entry.name[ID_LENGTH:]
        if end == ".lock":
            locked.add(stem)
        elif end in _ENDS and _looks_like_id(stem):
            try:
                stat = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # folded or deleted just now
                continue
            parts.setdefault(stem, [None, None])[_ENDS[end]] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return {stem: Stamp(directory, both[0], both[1]) for stem, both in parts.items()}, locked


def _looks_like_id(stem: str) -> bool:
    return (
        len(stem) == ID_LENGTH
        and stem[8] == stem[13] == stem[18] == stem[23] == "-"
        and stem.count("-") == 4
        and not stem.translate(_HEXADECIMAL)
    )


def _format_stat(stat: tuple[int, int, int] | None) -> str:
    return "-" if stat is None else f"{stat[0]},{stat[1]},{stat[2]}"
