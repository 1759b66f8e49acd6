"""Names on disk of everything that belongs to one session. An id is parsed before it touches a path."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import NotFoundError, StorageError, UsageError
from ollm.domain.text import shorten_ids
from ollm.system.atomic import AppendFile, make_private_directory, replace_file

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_COPY = r"(?:\.(?:damaged|original|replaced)-\d[\w-]*)?"
_OWN_FILE = rf"{_UUID}\.(?:lock|(?:json|journal){_COPY})|\.{_UUID}\..+\.tmp"
_ID_CHARACTERS = frozenset("0123456789abcdef-")
_PREFIX = r"[0-9a-f-]{4,36}"


def parse_id(text: str) -> str:
    """Parse an id into its canonical spelling. Raises NotFoundError if it is not a UUID."""
    found = text.strip().lower()
    if not is_id(found):
        raise NotFoundError(f"{text[:80]!r} is not a session id.", action="List them with `ollm sessions list`.")
    return found


def is_id(text: str) -> bool:
    return [*map(len, text.split("-"))] == [8, 4, 4, 4, 12] and {*text} <= _ID_CHARACTERS


class SessionPlaces(NamedTuple):
    """The directory of sessions, and the trash."""

    directory: Path
    trash: Path | None = None

    def get_document_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.json"

    def get_journal_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.journal"

    def get_lock_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.lock"

    def get_paths(self, session_id: str) -> tuple[Path, Path]:
        """Return the paths of document and journal."""
        return self.get_document_path(session_id), self.get_journal_path(session_id)

    def has(self, session_id: str) -> bool:
        """Return True if there is a document or a journal of this session."""
        return any(map(os.path.lexists, self.get_paths(session_id)))

    def list_ids(self) -> list[str]:
        return list_ids_in(self.directory)

    def shorten_id(self, session_id: str) -> str:
        """Shorten an id to a prefix that is unique among all sessions."""
        return shorten_ids([*self.list_ids(), session_id])[session_id]

    def iter_files(self, session_id: str) -> Iterator[Path]:
        """Iterate over every file of this session: documents, journals, locks, and damaged, replaced and temporary
        copies. Foreign files with such a name are left out."""
        for directory in (self.directory, self.trash):
            if directory and directory.is_dir():
                yield from iter_own_files(directory, session_id)
                yield from (path for path in directory.glob(f".{session_id}.*") if is_own_file(path))

    def list_others(self, session_id: str) -> list[Path]:
        """List files with this session's name that are not ours."""
        return [path for path in self.directory.glob(f"{session_id}.*") if not is_own_file(path)]

    def find(self, prefix: str) -> str:
        """Find the one session whose id starts with `prefix` (at least 4 characters)."""
        try:
            return match_prefix(self.list_ids(), prefix)
        except NotFoundError:
            if not self.trash or not any(found.startswith(prefix.strip().lower()) for found in list_ids_in(self.trash)):
                raise
            raise NotFoundError(
                f"Session {prefix} is in the trash.", action=f"Restore it with `ollm sessions restore {prefix}`."
            ) from None


def is_own_file(path: Path) -> bool:
    """Return True if a file in a sessions directory has a name that ollm gives; a directory never counts."""
    return bool(re.fullmatch(_OWN_FILE, path.name)) and (path.is_symlink() or not path.is_dir())


def iter_own_files(directory: Path, session_id: str) -> Iterator[Path]:
    """Iterate over a session's files in one directory, `.journal` before `.json`."""
    yield from (path for path in sorted(directory.glob(f"{session_id}.*")) if is_own_file(path))


def adopt_sessions(places: SessionPlaces, earlier: Path, clock: Clock) -> None:
    """Move the sessions of an earlier version's directory here. If a session is here already, the other files are kept
    beside it. Raises StorageError if they cannot be moved."""
    try:
        for session_id in list_ids_in(earlier):
            stamp = f".original-{format_name_stamp(clock())}" if places.has(session_id) else ""
            make_private_directory(places.directory)
            for path in iter_own_files(earlier, session_id):
                with contextlib.suppress(FileNotFoundError):  # Another process may move them at the same time.
                    path.rename(places.directory / f"{path.name}{stamp}")
    except OSError as error:
        raise StorageError(
            f"Sessions of an earlier version cannot be moved to {places.directory} ({error.strerror}): {earlier}.",
            action="Make both directories writable, or move the files yourself.",
        ) from error


def match_prefix(ids: list[str], prefix: str, shown_by: str = "ollm sessions list", noun: str = "session") -> str:
    """Find the id that starts with `prefix`; the error lists several matches. The command `shown_by` lists all ids."""
    wanted = prefix.strip().lower()
    if not re.fullmatch(_PREFIX, wanted):
        raise UsageError(
            f"{prefix[:80]!r} is not a {noun} id.", action="Give an id, or at least its first 4 characters."
        )
    found = sorted({session_id for session_id in ids if session_id.startswith(wanted)})
    if not found:
        raise NotFoundError(f"No {noun} starts with {wanted}.", action=f"List them with `{shown_by}`.")
    if len(found) > 1:
        shown = "".join(f"\n  {session_id}" for session_id in found[:20])
        raise UsageError(f"{wanted} matches {len(found)} {noun}s:{shown}", action="\nUse a longer prefix.")
    return found[0]


def list_ids_in(directory: Path) -> list[str]:
    """List the ids that have a document or a journal in `directory`."""
    try:
        names = [entry.name for entry in os.scandir(directory)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise make_unreadable_error(directory, error) from error
    stems = [name.rpartition(".")[0] for name in names if name.endswith((".json", ".journal"))]
    return [stem for stem in dict.fromkeys(stems) if is_id(stem)]


def make_unreadable_error(directory: Path, error: OSError) -> StorageError:
    action = "Check the permissions of the directory."
    if isinstance(error, NotADirectoryError):
        action = "Move the file away, or set `sessions.dataDir` to a directory."
    return StorageError(f"Cannot read {directory}: {error.strerror}.", action=action)


CopyKind = Literal["damaged", "original", "replaced"]
CHUNK_BYTES = 1 << 20
MAX_HELD_BYTES = 256 * 1024  # Small documents are kept in memory, since another program may write into the file.
_Identity = tuple[int, int, int, int]


def format_name_stamp(moment: datetime) -> str:
    return format_stamp(moment).replace(":", "").replace(".", "-")


def keep_copies(files: Iterable[Path], clock: Clock, kind: CopyKind = "damaged") -> list[Path]:
    """Keep those of the files that exist under second names that contain `kind` and the time."""
    return [keep_copy(file, clock, kind) for file in files if file.is_file()]


def keep_copy(file: Path, clock: Clock, kind: CopyKind) -> Path:
    """Keep the file under a second name: a link, or a copy if the disk has no links. A directory is moved. Returns
    the new path."""
    copy = free = file.with_name(f"{file.name}.{kind}-{format_name_stamp(clock())}")
    count = 1
    while free.exists():
        count += 1
        free = copy.with_name(f"{copy.name}-{count}")
    if file.is_dir() and not file.is_symlink():
        return file.rename(free)
    try:
        os.link(file, free)
    except OSError:
        with file.open("rb") as source:
            replace_file(free, _iter_chunks(source.fileno()))
    return free


def _iter_chunks(descriptor: int) -> Iterator[bytes]:
    place = 0
    while chunk := os.pread(descriptor, CHUNK_BYTES, place):
        place += len(chunk)
        yield chunk


def restore_journal(journal: AppendFile, clock: Clock) -> str:
    """Rewrite a journal that another program removed or changed, and keep the replacement. Returns a sentence about
    it, or "" if the journal is unchanged."""
    if journal.is_in_place():
        return ""
    path, before = journal.path, journal.good
    kept = keep_copy(path, clock, "replaced") if path.is_file() or path.is_dir() else None
    journal.write_anew()
    if not before and not kept:
        return ""
    lost = before - journal.good
    return _describe_restored(path, kept) + (f" {lost:,} bytes are gone." if lost > 0 else "")


def _describe_restored(file: Path, kept: Path | None) -> str:
    what, place = ("changed", f", and the other kept as {kept.name}") if kept else ("removed", "")
    return f"Another program has {what} {file}: it was rewritten{place}."


class DocumentGuard:
    """Guard that holds the document open after its last write, so that it can get its name back."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._descriptor = -1
        self._known: _Identity | None = None
        self._content: bytes | None = None

    def watch(self) -> None:
        """Watch the document in its current state."""
        self.close()
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(self.path, flags)
            self._known = _identify(os.fstat(self._descriptor))
            if self._known[2] <= MAX_HELD_BYTES:
                self._content = os.pread(self._descriptor, self._known[2], 0)

    def is_in_place(self) -> bool:
        """Return True if the file is unchanged since it was last seen, or if none is watched."""
        return self._known is None or self._find_named() == self._known

    def restore(self) -> str:
        """Put the document back, keep the file that replaced it, and return a sentence about it."""
        named = self._find_named()
        if self._known is None or named == self._known:
            return ""
        kept = keep_copy(self.path, self._clock, "replaced") if named else None
        changed_in_place = _identify(os.fstat(self._descriptor)) != self._known
        if kept and changed_in_place and self._content is None:
            self._known = named
            return f"Another program has changed {self.path}; what it wrote is also in {kept.name}."
        self.write_to(self.path)
        self.watch()
        return _describe_restored(self.path, kept)

    def write_to(self, target: Path) -> None:
        """Write the document as it was last seen."""
        replace_file(target, _iter_chunks(self._descriptor) if self._content is None else self._content)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._known, self._content = -1, None, None

    def _find_named(self) -> _Identity | None:
        try:
            return _identify(self.path.lstat())
        except OSError:
            return None


def _identify(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
