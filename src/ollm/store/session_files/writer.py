"""Writes one session, as its only writer: records go to the journal, which is merged into the document (folded)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.clock import make_id, now
from ollm.domain.errors import BusyError, StorageError, UnsavedError, suggest_storage_fix
from ollm.domain.messages import JsonObject, Message
from ollm.store.session_files import document, journal
from ollm.store.session_files.files import LAST_MESSAGE
from ollm.store.session_files.places import DocumentGuard, SessionPlaces, keep_copies, restore_journal
from ollm.system.atomic import AppendFile, make_private_directory, replace_file
from ollm.system.locks import OwnerLock

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession
    from ollm.store.session_files.reader import SessionReader
    from ollm.store.session_files.waypoints import SessionPart


FOLD_ALWAYS_BELOW_BYTES = 64 * 1024
KEEP_JOURNAL_FROM_BYTES = 8 << 20  # Closing a session with files of this size keeps its journal.
MAX_FOLDED_BYTES = 64 << 20  # A longer journal stays beside its document for good.
LOOK_EVERY_SECONDS = 0.05  # Least time between two checks of the journal.
TEXT_SECONDS = 1.0  # A killed process loses at most this much of the streamed text.


class SessionWriter:
    """Writer that holds the session's lock. Records that failed to be written stay in `pending` and go first."""

    def __init__(self, places: SessionPlaces, session_id: str, head: JsonObject, *, new: bool = False) -> None:
        self.session_id = session_id
        self.new = new  # This process began the session, so its files have no foreign bytes.
        self.head = head
        self.last_number = 0
        self.pending: list[bytes] = []
        self.deferred = False
        self.directory = places.directory
        self._places = places
        self._lock = OwnerLock(places.get_lock_path(session_id))
        self._journal = AppendFile(places.get_journal_path(session_id))
        self.document = DocumentGuard(places.get_document_path(session_id), now)
        self.reports: list[str] = []  # Reports about changes by other programs.
        self._pieces = 0  # Number of records of the unfinished answer.
        self._streamed: journal.Parts = []
        self._next_text = 0.0
        self._displaced = False  # Another program removed the journal, so new records are in no named file.
        self.document_size = 0
        self._written = False
        self._partial: journal.Parts = []
        self._running: dict[str, JsonObject] = {}
        self._next_look = 0.0

    @property
    def is_empty(self) -> bool:
        """True if the session has no messages and no partial answer."""
        return self.last_number == 0 and not self.has_partial

    @property
    def is_saved(self) -> bool:
        """True if everything recorded is on disk."""
        return self._written and not self.pending and not self._displaced

    @property
    def journal_size(self) -> int:
        return self._journal.good

    @property
    def has_partial(self) -> bool:
        return bool(self._partial or self._streamed)

    @property
    def has_new_text(self) -> bool:
        """True if some text of the unfinished answer is not recorded yet."""
        return bool(self._streamed)

    @property
    def open(self) -> bool:
        return self._lock.held

    @property
    def has_own_files(self) -> bool:
        """True if the session began here and no other program has touched its files."""
        return self.new and self._written and self.document.is_in_place() and self._journal.is_in_place()

    def take_reports(self) -> list[str]:
        """Return the reports and clear them."""
        found, self.reports = self.reports, []
        return found

    def lock(self) -> None:
        """Become the only writer, or raise `BusyError` naming the owner."""
        make_private_directory(self.directory)
        self._lock.acquire(f"Session {self.session_id}")

    def adopt(self, loaded: LoadedSession) -> None:
        """Continue with the existing files, cutting off a truncated journal line."""
        self.last_number = loaded.last_number
        self._partial = loaded.partial
        self.document_size = self.document.path.stat().st_size
        self._written = True
        self.document.watch()
        self._journal.open()
        if self._journal.good > loaded.journal_good:
            self._journal.truncate(loaded.journal_good)
        if not self._journal.ends_with(b"\n"):
            self._journal.append(b"\n")

    @contextmanager
    def batch_writes(self) -> Iterator[None]:
        """Write everything recorded inside the block at its end, with one sync."""
        usual, self.deferred = self.deferred, True
        try:
            yield
        finally:
            self.deferred = usual
        if not usual:
            self.flush()

    def record_message(self, at: str, message: Message, tokens: int) -> None:
        """Add a message. It replaces what was recorded of it while it was under way."""
        self._partial, self._streamed, self._pieces, self._next_text = [], [], 0, 0.0
        self.last_number = message.id
        raw = msgspec.Raw(journal.encode_json(message))
        self._append_record(journal.JournalRecord(at=at, message=raw, tokens=tokens))

    def record_text(self, now: Callable[[], str], kind: str, text: str) -> None:
        """Take the next text of the unfinished answer. It is recorded every `TEXT_SECONDS`."""
        if not self.deferred:
            self._streamed = journal.extend_parts(self._streamed, [{"type": kind, "text": text}])
            if monotonic() >= self._next_text:
                self.write_text(now())

    def write_text(self, at: str) -> None:
        """Record the text of the unfinished answer that is not recorded yet."""
        if self._streamed:
            more, self._streamed = self._streamed, []
            self._partial = journal.extend_parts(self._partial, more)
            self._next_text = monotonic() + TEXT_SECONDS
            self._pieces += 1
            self._append_record(self._make_piece(at, more, self._pieces))

    def _make_piece(self, at: str, parts: journal.Parts, number: int) -> journal.JournalRecord:
        return journal.JournalRecord(at=at, piece=(self.last_number + 1, number), partial=parts)

    def record_call(self, at: str, call: JsonObject, tokens: int) -> None:
        """Record a call, or its changes since it started."""
        known = self._running.pop(call["id"], {})
        if call.get("status") == "running":
            self._running[call["id"]] = call
        changed = {name: value for name, value in call.items() if name == "id" or known.get(name, ...) != value}
        raw = journal.encode_json(changed)
        if raw.count(b"{") + raw.count(b"[") > journal.MAX_NESTING_LEVELS:
            raw = journal.encode_json(journal.clean_json(changed))
        self._append_record(journal.JournalRecord(at=at, call=msgspec.Raw(raw), tokens=tokens))

    def change_fields(self, at: str, top: JsonObject, metadata: JsonObject) -> None:
        """Set fields of the document and of its metadata; a list that only grew is written as its new items."""
        replaced, grown = journal.split_changes(self.head.get("metadata", {}), metadata)
        self._append_record(journal.JournalRecord(at=at, top=top or None, set=replaced or None, append=grown or None))

    def flush(self) -> None:
        """Write the pending records. Raises `StorageError` and keeps them for another attempt."""
        if not self._written:
            self._write_document()
        if self.pending:
            with self._explain_errors():
                self._journal.append(b"".join(self.pending))
            self.pending = []
            if monotonic() >= self._next_look:
                self._displaced = not self._journal.is_in_place()
                self._next_look = monotonic() + LOOK_EVERY_SECONDS
        if self._displaced:
            self.check_files()

    def fold_when_due(self) -> bool:
        """Fold at the end of a turn: always while the document is small, later when the journal has outgrown it."""
        self.flush()
        least = self.document_size if self.document_size >= FOLD_ALWAYS_BELOW_BYTES else 0
        if least < self._journal.good <= MAX_FOLDED_BYTES:
            return self.fold()
        self.check_files()
        return False

    def fold(self) -> bool:
        """Write document and journal as one document, then restart the journal. Returns False if it was empty."""
        self.flush()
        self.check_files()
        if not self._journal.good:
            return False
        from ollm.store.session_files.reader import SessionReader

        with self._explain_errors():
            with contextlib.closing(SessionReader(self.document.path, self._journal.path)) as reader:
                self.document_size = replace_file(self.document.path, self._iter_folded(reader))
        self.document.watch()
        self._restart_journal()
        return True

    def _iter_folded(self, reader: SessionReader) -> Iterator[bytes]:
        """Yield the new document. Old files with unreadable parts are kept beside it."""
        head = {**self.head, "metadata": {**self.head.get("metadata", {}), LAST_MESSAGE: self.last_number}}
        yield from document.iter_document(head, reader.table.iter_messages(), reader.table.iter_calls())
        if reader.damage:
            kept = keep_copies(self._places.get_paths(self.session_id), now)
            self.reports.append(f"Not everything could be read ({reader.damage}); kept as {kept[-1].name}.")

    def check_files(self) -> None:
        """Check that document and journal are unchanged, and restore what another program removed."""
        if self.document.is_in_place() and self._journal.is_in_place():
            return
        self._displaced = True  # It stays set until the files are restored.
        with self._explain_errors():
            make_private_directory(self.directory)
            reports = [restore_journal(self._journal, now), self.document.restore()]
            self.reports += filter(None, reports)
            with contextlib.suppress(BusyError):
                self._lock.renew()
        self._displaced = False

    def close(self) -> bool:
        """Fold, remove the journal and release the lock. Returns True if it folded.

        If this fails, the session is still open, and `abandon` releases it.
        """
        self._keep_interrupted()
        folded = self._fold_to_close()
        self.abandon()
        return folded

    def _fold_to_close(self) -> bool:
        """Fold and remove the journal, unless the session is large: then the journal stays beside the document."""
        self.flush()
        self.check_files()
        if self._journal.good and self._journal.good + self.document_size >= KEEP_JOURNAL_FROM_BYTES:
            return False
        folded = self.fold()
        with self._explain_errors():
            if self._journal.is_in_place():
                self._journal.path.unlink(missing_ok=True)
        return folded

    def abandon(self) -> None:
        """Release the lock without writing."""
        self._journal.close()
        self.document.close()
        self._lock.release()

    def open_reader(self, part: SessionPart | None = None, *, document: Path | None = None) -> SessionReader:
        """Open a reader that includes unsaved records. `document` is the document's path if the file was moved."""
        from ollm.store.session_files.reader import SessionReader

        lines: Path | None = self._journal.path
        waiting = b"".join(self.pending)
        if self._streamed:
            waiting += journal.encode_line(self._make_piece("", self._streamed, self._pieces + 1))
        if self._displaced or not self._journal.is_in_place():
            lines, waiting = None, self._journal.read_good() + waiting
        return SessionReader(document or self.document.path, lines, waiting=waiting, part=part)

    def _keep_interrupted(self) -> None:
        """Turn an answer that will not be finished into an interrupted message."""
        if parts := journal.extend_parts(self._partial, self._streamed):
            at = self.head["lastActivity"]
            message = {"role": "assistant", "parts": parts, "timestamp": at, "id": self.last_number + 1}
            self.record_message(at, msgspec.convert({**message, "interrupted": True}, Message), 0)

    def _append_record(self, record: journal.JournalRecord) -> None:
        journal.change_head(self.head, record)
        self.pending.append(journal.encode_line(record))
        if not self.deferred:
            self.flush()

    def _write_document(self) -> None:
        """Write the first document; the session exists from then on."""
        with self._explain_errors():
            if not self._lock.held:
                self.lock()
            self.document_size = replace_file(self.document.path, document.iter_document(self.head, (), ()))
        self.document.watch()
        self._written = True

    def _restart_journal(self) -> None:
        """Start a new file, so that readers of the old one can finish it, and carry over an unfinished answer."""
        path = self._journal.path
        with self._explain_errors():
            self._journal.close()
            if self._partial:
                self._pieces = 1
                replace_file(path, journal.encode_line(self._make_piece(self.head["lastActivity"], self._partial, 1)))
            else:
                path.unlink(missing_ok=True)
            self._journal.open()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Name the session in an error of the system, and what to do about it."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"Session {self.session_id} cannot be written to {self.directory}: {error.strerror or error}.",
                action=f"{suggest_storage_fix(error)} before you quit; ollm keeps it in memory and retries.",
            ) from error


def write_rescue_copy(writer: SessionWriter) -> Path | None:
    """Write the whole session, including unsaved records, to a new private temporary directory. Its new id ensures
    that it replaces no session when moved to the sessions. Returns None, and leaves no directory, if that fails too."""
    head = {**writer.head, "sessionId": make_id()}
    try:
        import tempfile

        path = Path(tempfile.mkdtemp(prefix="ollm-unsaved-")) / f"{head['sessionId']}.json"
    except OSError:
        return None
    try:
        place = writer.document.path
        if not writer.document.is_in_place():
            writer.document.write_to(place := path)
        with contextlib.closing(writer.open_reader(document=place)) as reader:
            replace_file(path, document.iter_document(head, reader.table.iter_messages(), reader.table.iter_calls()))
    except (OSError, StorageError):
        with contextlib.suppress(OSError):
            path.parent.rmdir()
        return None
    return path


def make_unsaved_error(writer: SessionWriter, cause: StorageError, *, rescue: bool) -> UnsavedError:
    """Make an error about unsaved data that suggests a fix. With `rescue`, for a session about to end, write a copy
    elsewhere."""
    count = sum(isinstance(journal.parse_record(line).message, msgspec.Raw) for line in writer.pending)
    what = "1 message" if count == 1 else f"{count} messages" if count else "The last change"
    reason = getattr(cause.__cause__, "strerror", None) or cause.message.rstrip(".")
    message = f"Not saved: {what} of session {writer.session_id}. {writer.directory} refuses it: {reason}."
    if not rescue:
        fix = suggest_storage_fix(cause.__cause__)
        return UnsavedError(message, action=f"{fix}, then try again; it is kept in memory.")
    copy = write_rescue_copy(writer)
    if copy is None:
        action = "No copy could be written elsewhere either: what is not saved ends with this process."
    else:
        action = f"The whole session is in {copy}; move that file to {writer.directory}: it becomes another session."
    return UnsavedError(message, action=action)
