"""Build a local session from the archive's records: the same session, or a fork with its own id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from ollm.archive.outgoing import FILE_ENDS
from ollm.archive.sending import ArchivedSession, ArchiveRecord
from ollm.domain.errors import DamagedError
from ollm.domain.messages import JsonObject
from ollm.store.session_files import document as documents
from ollm.store.session_files.journal import encode_json

if TYPE_CHECKING:
    from ollm.store.session_files.store import SessionFiles


def write_pulled(files: SessionFiles, session_id: str, records: Iterable[ArchiveRecord]) -> None:
    """Install the session atomically. Pieces of files, if any, come first in `records`."""
    living = _Sections((record for record in records if record.body is not None), attrgetter("kind"))
    if living.section is None:
        raise DamagedError(f"The archive holds nothing of session {session_id}.")
    if living.section == "file":
        pieces = _Sections(living.take("file"), lambda record: record.key.partition(":")[0])
        has_document = pieces.section == FILE_ENDS[0]
        document, journal = ((record.body or b"" for record in pieces.take(end)) for end in FILE_ENDS)
        files.install(session_id, document if has_document else None, journal)
    else:
        files.install(session_id, _iter_document(session_id, living))


def write_fork(files: SessionFiles, new_id: str, records: Iterable[ArchiveRecord], found: ArchivedSession) -> None:
    """Install a new session that names the session it was made from."""
    source = {"sessionId": found.session_id, "owner": found.owner, "host": found.host, "seq": found.last_seq}
    living = _Sections(
        (record for record in records if record.body is not None and record.kind != "file"), attrgetter("kind")
    )
    files.install(new_id, _iter_document(new_id, living, {"forkedFrom": source}))


def _iter_document(session_id: str, records: _Sections, metadata: JsonObject | None = None) -> Iterator[bytes]:
    heads = [record.body or b"{}" for record in records.take("head")]
    head = _name_head(heads[0] if heads else b"{}", session_id, metadata)
    messages, calls = records.take("message"), records.take("call")
    return documents.join_document(
        head, filter(None, map(_check_line, messages)), filter(None, map(_check_line, calls))
    )


def _name_head(body: bytes, session_id: str, metadata: JsonObject | None) -> bytes:
    """Put the session's id and `metadata` into the head, or return it as sent if nothing has to change."""
    head = _parse_object(body) or {}
    if head.get("sessionId") == session_id and metadata is None and b"\n" not in body:
        return body
    held = head.get("metadata")
    merged = {**(held if isinstance(held, dict) else {}), **(metadata or {})}
    return documents.encode_head({**head, "sessionId": session_id, "metadata": merged})


def _check_line(record: ArchiveRecord) -> bytes:
    """Return an entry as sent, or empty bytes if it is not an object and would break the document."""
    body = record.body or b""
    found = _parse_object(body)
    if found is None:
        return b""
    return body if b"\n" not in body else encode_json(found)


def _parse_object(body: bytes) -> JsonObject | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _Sections:
    """Iterator over records by section, without keeping them; `name` returns the section of a record."""

    def __init__(self, records: Iterable[ArchiveRecord], name: Callable[[ArchiveRecord], str]) -> None:
        self._records = iter(records)
        self._name = name
        self._next = next(self._records, None)

    @property
    def section(self) -> str | None:
        return self._name(self._next) if self._next else None

    def take(self, section: str) -> Iterator[ArchiveRecord]:
        while self._next is not None and self.section == section:
            record, self._next = self._next, next(self._records, None)
            yield record
