"""Makes a session of this machine from the archive's records: as it was archived, or as a fork with its own id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ollm.archive.outgoing import FILE_ENDS
from ollm.archive.sending import ArchiveRecord
from ollm.domain.errors import DamagedError
from ollm.domain.messages import JsonObject
from ollm.store.session_files import document, journal

if TYPE_CHECKING:
    from ollm.store.session_files import SessionFiles


def write_pulled(files: SessionFiles, session_id: str, records: Iterable[ArchiveRecord]) -> None:
    """Put the session in place, whole or not at all. `records` begin with pieces of files where there are some."""
    living = _Sections(record for record in records if record.body is not None)
    if living.kind is None:
        raise DamagedError(f"The archive holds nothing of session {session_id}.")
    if living.kind == "file":
        pieces = _Pieces(living.take("file"))
        document = pieces.take(FILE_ENDS[0])
        files.install(session_id, document if pieces.begins_with(FILE_ENDS[0]) else None, pieces.take(FILE_ENDS[1]))
    else:
        files.install(session_id, _iter_document(session_id, living))


def write_fork(files: SessionFiles, new_id: str, records: Iterable[ArchiveRecord], source: JsonObject) -> None:
    """Put a new session in place that says what it was made from."""
    living = _Sections(record for record in records if record.body is not None and record.kind != "file")
    files.install(new_id, _iter_document(new_id, living, {"forkedFrom": source}))


def _iter_document(session_id: str, records: _Sections, metadata: JsonObject | None = None) -> Iterator[bytes]:
    heads = [record.body or b"{}" for record in records.take("head")]
    head = _name_head(heads[0] if heads else b"{}", session_id, metadata)
    messages, calls = records.take("message"), records.take("call")
    return document.join_document(head, filter(None, map(_check_line, messages)), filter(None, map(_check_line, calls)))


def _name_head(body: bytes, session_id: str, metadata: JsonObject | None) -> bytes:
    """The head with the session's own id: as it was sent, unless that has to change."""
    head = _parse_object(body) or {}
    if head.get("sessionId") == session_id and metadata is None and b"\n" not in body:
        return body
    held = head.get("metadata")
    merged = {**(held if isinstance(held, dict) else {}), **(metadata or {})}
    return document.encode_head({**head, "sessionId": session_id, "metadata": merged})


def _check_line(record: ArchiveRecord) -> bytes:
    """An entry as it was sent; one that is no object on one line would break the document, and is left out."""
    body = record.body or b""
    found = _parse_object(body)
    if found is None:
        return b""
    return body if b"\n" not in body else journal.encode_json(found)


def _parse_object(body: bytes) -> JsonObject | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _Sections:
    """Records in the order of their kinds, handed out kind by kind without keeping them."""

    def __init__(self, records: Iterable[ArchiveRecord]) -> None:
        self._records = iter(records)
        self._next = next(self._records, None)

    @property
    def kind(self) -> str | None:
        return self._next.kind if self._next else None

    def take(self, kind: str) -> Iterator[ArchiveRecord]:
        while self._next is not None and self._next.kind == kind:
            record, self._next = self._next, next(self._records, None)
            yield record


class _Pieces:
    """Pieces of two files, one behind the other."""

    def __init__(self, records: Iterator[ArchiveRecord]) -> None:
        self._records = records
        self._next = next(records, None)

    def begins_with(self, end: str) -> bool:
        return self._next is not None and self._next.key.startswith(f"{end}:")

    def take(self, end: str) -> Iterator[bytes]:
        while self._next is not None and self._next.key.startswith(f"{end}:"):
            record, self._next = self._next, next(self._records, None)
            yield record.body or b""
