"""Second names for session files that are about to be rewritten, so that no byte of another's making disappears."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ollm.domain.clock import Clock, format_stamp
from ollm.system.atomic import AppendFile, replace_file

CopyKind = Literal["damaged", "original", "replaced"]
_CHUNK_BYTES = 1 << 20


def keep_copies(home: Path, session_id: str, clock: Clock, kind: CopyKind = "damaged") -> list[Path]:
    """Give a session's document and journal a second name each, with what they are and when."""
    files = (home / f"{session_id}.json", home / f"{session_id}.journal")
    return [keep_copy(file, clock, kind) for file in files if file.is_file()]


def keep_copy(file: Path, clock: Clock, kind: CopyKind) -> Path:
    """Where the file is under its second name: the same file, or a copy where the disk has no links. A directory
    is moved."""
    when = format_stamp(clock()).replace(":", "").replace(".", "-")
    copy = _find_free_name(file.with_name(f"{file.name}.{kind}-{when}"))
    if file.is_dir() and not file.is_symlink():
        file.rename(copy)
        return copy
    try:
        os.link(file, copy)
    except OSError:
        replace_file(copy, _iter_chunks(file))
    return copy


def restore_journal(journal: AppendFile, clock: Clock) -> str:
    """Write a journal anew that another program removed or changed, and keep what took its place; what happened, in a
    sentence. Nothing where it is as it was left."""
    if journal.is_in_place():
        return ""
    path, before = journal.path, journal.good
    kept = keep_copy(path, clock, "replaced") if path.is_file() or path.is_dir() else None
    journal.write_anew()
    return describe_restored(path, kept, before - journal.good) if before or kept else ""


def describe_restored(file: Path, kept: Path | None, lost_bytes: int) -> str:
    """What another program did to a file that was rewritten, where its version is kept, and what is lost."""
    what, place = ("changed", f", and kept as {kept.name}") if kept else ("removed", "")
    done = f"Another program has {what} {file}: it was rewritten{place}."
    return done + (f" {lost_bytes:,} bytes are gone." if lost_bytes > 0 else "")


def _find_free_name(path: Path) -> Path:
    count, free = 1, path
    while free.exists():
        count += 1
        free = path.with_name(f"{path.name}-{count}")
    return free


def _iter_chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk
