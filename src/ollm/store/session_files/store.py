"""The sessions on disk as a whole: create, open for writing, read, remove."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.clock import Clock, now
from ollm.domain.errors import NotFoundError, StorageError, UsageError, suggest_storage_fix
from ollm.domain.messages import JsonObject
from ollm.domain.session import Session
from ollm.store.session_files.files import get_file_time
from ollm.store.session_files.places import (
    SessionPlaces,
    iter_own_files,
    keep_copy,
    list_ids_in,
    parse_id,
)
from ollm.store.session_files.waypoints import MIN_KNOWN_BYTES, FindKnown, KnownState, SessionPart
from ollm.store.session_files.writer import SessionWriter
from ollm.system.atomic import make_private_directory, replace_file, sync_directory
from ollm.system.locks import read_owner

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession
    from ollm.store.session_files.reader import SessionReader


class MessagePage(msgspec.Struct, frozen=True):
    """A page of `limit` messages: the newest, or those before a number."""

    before: int | None
    limit: int


class SessionFiles:
    """One directory of sessions. Synchronous; one writer per session, any number of readers."""

    def __init__(self, places: SessionPlaces, clock: Clock = now, find_known: FindKnown = lambda _: None) -> None:
        self.places = places
        self.clock = clock
        self._find_known = find_known  # Finds a session's state in the index.

    def create(self, head: JsonObject) -> SessionWriter:
        """Create a writer for a new session; nothing is on disk before its first `flush`."""
        return SessionWriter(self.places, head["sessionId"], head, new=True)

    def open(self, session_id: str, *, to_continue: bool = True, since: int = 0) -> tuple[SessionWriter, LoadedSession]:
        """Lock a session, repair damage, and return its writer and its content.

        `to_continue` also gives a result to every call without one, and returns all content. Of a long session the
        messages after number `since` are returned; of a large one, and without `to_continue`, the end.
        """
        from ollm.store.session_files.recovery import recover_session

        session_id = self._require_known(session_id)
        writer = SessionWriter(self.places, session_id, {})
        with self._translate_errors(session_id):
            writer.lock()
            try:
                known = self._find_state(session_id) if to_continue else None
                return writer, recover_session(
                    self.places, writer, self.clock, to_continue=to_continue, since=since, known=known
                )
            except BaseException:
                writer.abandon()
                raise

    def read_open(self, writer: SessionWriter, page: MessagePage | None = None) -> LoadedSession:
        """Read a session open in this process, saved or not; with `page` at least that much of it."""
        from ollm.store.session_files.loading import load_session

        part = _make_part(self._find_state(writer.session_id), page) if page else None
        with contextlib.closing(writer.open_reader(part)) as reader:
            reader.head = {**reader.head, **writer.head}
            return load_session(reader)

    def read_user_words(self, writer: SessionWriter) -> dict[int, str]:
        """Read the user's messages in a session open in this process, in full, by number."""
        with contextlib.closing(writer.open_reader()) as reader:
            return reader.read_user_words()

    def read(self, session_id: str, page: MessagePage | None = None) -> LoadedSession:
        """Read everything readable, without changing any file; with `page` at least that much of it."""
        from ollm.store.session_files.loading import load_session

        part = _make_part(self._find_state(session_id), page) if page else None
        with self.open_reader(session_id, part=part) as reader:
            return load_session(reader)

    @contextlib.contextmanager
    def open_reader(self, session_id: str, *, part: SessionPart | None = None) -> Iterator[SessionReader]:
        """Open a session for reading entry by entry, without changing any file. Of a long session only `part` is
        read."""
        from ollm.store.session_files.reader import SessionReader

        session_id = self._require_known(session_id)
        paths, alive = self.places.get_paths(session_id), self.is_open(session_id)
        with contextlib.closing(SessionReader(*paths, part=part, alive=alive)) as reader:
            yield reader

    def describe_session(self, session_id: str) -> Session:
        """Return a session without its messages and calls."""
        with self.open_reader(session_id, part=SessionPart(self._find_state(session_id), 0, least=0)) as reader:
            return reader.session

    def _find_state(self, session_id: str) -> KnownState | None:
        return self._find_known(session_id) if self.measure_bytes(session_id) >= MIN_KNOWN_BYTES else None

    def measure_bytes(self, session_id: str) -> int:
        """Measure the size of the session's document and journal."""
        return sum(path.stat().st_size for path in self.places.get_paths(session_id) if path.is_file())

    def is_open(self, session_id: str) -> bool:
        """Return True if a running process has the session open for writing."""
        return read_owner(self.places.get_lock_path(session_id)) is not None

    def remove(self, session_id: str) -> None:
        """Delete every file with this session's name, also in the trash. Raises `BusyError` while it is open."""
        session_id = parse_id(session_id)
        if not list(self.places.iter_files(session_id)):
            if (path := self.places.get_document_path(session_id)).is_dir():
                raise StorageError(
                    f"{path} is a directory, which ollm did not write; it was left.",
                    action="Look into it, and move it away if you do not need it.",
                )
            raise self._make_unknown_error(session_id)
        with self._hold_lock(session_id):
            for path in self.places.iter_files(session_id):
                if path != self.places.get_lock_path(session_id):
                    path.unlink(missing_ok=True)

    def install(self, session_id: str, document: Iterable[bytes] | None, journal: Iterable[bytes] = ()) -> None:
        """Install a whole session, replacing any with the same id. Raises `BusyError` while it is open."""
        make_private_directory(self.places.directory)
        path = self.places.get_journal_path(session_id)
        with self._hold_lock(session_id):
            if document is not None:
                replace_file(self.places.get_document_path(session_id), document)
            if not replace_file(path, journal):
                path.unlink()

    def move(self, session_id: str, directory: Path, *, at: datetime) -> None:
        """Move a session's files to another directory; their time becomes `at`. Raises `BusyError` while it is open."""
        session_id = self._require_known(session_id)
        with self._hold_lock(session_id):
            self._move_files(session_id, self.places.directory, directory, at)

    def restore_from_trash(self, session_id: str, *, at: datetime) -> None:
        """Move a session from the trash back to the sessions."""
        session_id = parse_id(session_id)
        if self.places.trash is None or session_id not in list_ids_in(self.places.trash):
            raise self._make_unknown_error(session_id)
        if self.places.has(session_id):
            raise UsageError(f"Session {session_id} already exists.", action="Delete or export one of the two.")
        with self._hold_lock(session_id):
            self._move_files(session_id, self.places.trash, self.places.directory, at)

    def list_trashed_before(self, oldest: datetime) -> list[str]:
        """List the sessions that were put in the trash before `oldest`."""
        trash = self.places.trash
        found = list_ids_in(trash) if trash else []
        if not found:
            return []

        return [name for name in found if trash and get_file_time(*trash.glob(f"{name}.*")) < oldest]

    def _move_files(self, session_id: str, source: Path, target: Path, at: datetime) -> None:
        import shutil

        make_private_directory(target)
        for path in [found for found in iter_own_files(target, session_id) if found.suffix in (".json", ".journal")]:
            kept = keep_copy(path, self.clock, "replaced")  # A user may have restored this copy by hand.
            path.unlink()
            os.utime(kept, (at.timestamp(), at.timestamp()), follow_symlinks=False)
        for path in iter_own_files(source, session_id):  # The journal comes first, so that no document lacks it.
            if path.suffix != ".lock":
                os.utime(path, (at.timestamp(), at.timestamp()), follow_symlinks=False)
                shutil.move(path, target / path.name)
        sync_directory(target)
        sync_directory(source)

    @contextlib.contextmanager
    def _hold_lock(self, session_id: str) -> Iterator[None]:
        writer = SessionWriter(self.places, session_id, {})
        with self._translate_errors(session_id):
            writer.lock()
            try:
                yield
            finally:
                writer.abandon()

    @contextlib.contextmanager
    def _translate_errors(self, session_id: str) -> Iterator[None]:
        """Add the path and a suggested fix to system errors."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"Session {session_id} in {self.places.directory} cannot be changed: {error.strerror}.",
                action=f"{suggest_storage_fix(error)}.",
            ) from error

    def _make_unknown_error(self, session_id: str) -> NotFoundError:
        return NotFoundError(f"No session {session_id}.", action="List them with `ollm sessions list`.")

    def _require_known(self, session_id: str) -> str:
        session_id = parse_id(session_id)
        if not self.places.has(session_id):
            raise self._make_unknown_error(session_id)
        return session_id


def _make_part(known: KnownState | None, page: MessagePage) -> SessionPart:
    return SessionPart(known, (page.before or sys.maxsize) - 1 - page.limit, page.limit, page.before)
