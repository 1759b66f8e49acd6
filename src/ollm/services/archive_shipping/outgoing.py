"""A session as the records that leave this machine, read piece by piece: its head, messages, calls, and, when its files
are damaged or of another layout and nothing is to be taken out of them, the files themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.messages import JsonObject, Message
from ollm.domain.tools import ToolCallRecord
from ollm.services.archive_shipping.cleaning import RecordCleaner
from ollm.store.session_files import journal, layout, lenient
from ollm.store.session_files.damage import DamageReport
from ollm.store.session_files.loading import complete_head, make_partial_message, read_calls, read_messages
from ollm.store.session_index.entries import make_call_entry, make_message_entry
from ollm.store.team_archive.records import ArchivedHead, ArchiveRecord

if TYPE_CHECKING:
    from ollm.store.session_files import SessionStream

PIECE_BYTES = 256 * 1024
FILE_ENDS = (".json", ".journal")
_JOURNAL_POSITION = 1_000_000_000


class OutgoingSession:
    """One reading of a session. `describe` says what a list shows of what was read so far."""

    def __init__(self, stream: SessionStream, cleaner: RecordCleaner, directory: Path) -> None:
        self._stream = stream
        self._cleaner = cleaner
        self._directory = directory
        self._head = cleaner.clean_head(complete_head(stream.reader.head, stream.session))
        self._messages = 0

    def iter_records(self) -> Iterator[ArchiveRecord]:
        yield ArchiveRecord("head", "", layout.encode_head(self._head), 0)
        yield from self._iter_messages()
        for call, data, sound in read_calls(self._stream.reader):
            yield self._make_call(call, lenient.preserve_bytes(data, call, sound))
        if self._cleaner.redact is None and (self._stream.damage or self._stream.reader.foreign):
            yield from self._iter_pieces()

    def _iter_messages(self) -> Iterator[ArchiveRecord]:
        last = 0
        for message, data, sound in read_messages(self._stream.reader):
            last = max(last, message.id)
            yield self._make_message(message, lenient.preserve_bytes(data, message, sound))
        if self._stream.reader.partial:
            message = make_partial_message(self._stream.reader, last + 1)
            yield self._make_message(message, journal.encode_json(message))

    def _make_message(self, message: Message, body: bytes) -> ArchiveRecord:
        self._messages += 1
        before = lenient.parse_object(body)
        clean = self._cleaner.clean_message(before)
        if clean != before:
            body = journal.encode_json(clean)
            message = lenient.parse_message(body, message.id, DamageReport()) or replace(message, parts=())
        entry = make_message_entry(message)
        return ArchiveRecord("message", str(message.id), body, message.id, entry if entry.text else None)

    def _make_call(self, call: ToolCallRecord, body: bytes) -> ArchiveRecord:
        before = lenient.parse_object(body)
        clean = self._cleaner.clean_call(before)
        if clean != before:
            body = journal.encode_json(clean)
            call = lenient.parse_call(body, DamageReport()) or replace(call, args={}, result=None)
        return ArchiveRecord("call", call.id, body, None, make_call_entry(call))

    def _iter_pieces(self) -> Iterator[ArchiveRecord]:
        """The files as they lie there."""
        for number, end in enumerate(FILE_ENDS):
            path = self._directory / f"{self._stream.session.session_id}{end}"
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                for index, piece in enumerate(iter(lambda: file.read(PIECE_BYTES), b"")):
                    position = number * _JOURNAL_POSITION + index
                    yield ArchiveRecord("file", f"{end}:{index:08d}", piece, position)

    def describe(self) -> ArchivedHead:
        session = self._stream.session
        metadata: JsonObject = self._head.get("metadata") or {}
        title = metadata.get("title")
        return ArchivedHead(
            title=title if isinstance(title, str) else "",
            model=session.model,
            workspace=session.metadata.workspace,
            origin=session.metadata.origin,
            start_time=session.start_time,
            last_activity=session.last_activity,
            message_count=self._messages,
            token_count=session.metadata.token_count,
            redacted=self._cleaner.redact is not None,
            damaged=self._stream.damage,
        )
