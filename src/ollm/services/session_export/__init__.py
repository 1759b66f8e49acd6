"""Session export (H): Markdown, one HTML file, or the JSON document with its secrets redacted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from ollm.domain.messages import Message
from ollm.domain.session import RedactField, Session, redact_record
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.html import render_html
from ollm.services.session_export.markdown import ExportSource, render_markdown
from ollm.store.session_files.reader import SessionReader

__all__ = ["RedactedSession", "render_export", "render_html", "render_markdown"]


def render_export(source: SessionReader | RedactedSession, form: str) -> Iterator[bytes]:
    """Render a session in one of the formats, chunk by chunk."""
    if form == "json":
        return source.iter_document()
    chunks = render_markdown(source) if form == "markdown" else render_html(source)
    return (chunk.encode("utf-8", "replace") for chunk in chunks)


Struct = TypeVar("Struct", Message, ToolCallRecord, Session)


class RedactedSession:
    """Streams another session with its secrets redacted."""

    def __init__(self, source: ExportSource, redact: RedactField) -> None:
        self._source = source
        self._redact = redact
        self.session = self._redact_struct(source.session)

    def iter_messages(self) -> Iterator[Message]:
        return map(self._redact_struct, self._source.iter_messages())

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        found = self._source.find_call(call_id)
        return self._redact_struct(found) if found else None

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        return map(self._redact_struct, self._source.iter_other_calls())

    def iter_document(self) -> Iterator[bytes]:
        """Iterate over one JSON document."""
        from ollm.store.session_files.document import iter_document

        encode = msgspec.json.Encoder().encode
        head = msgspec.to_builtins(self.session)
        return iter_document(head, map(encode, self.iter_messages()), map(encode, self.iter_other_calls()))

    def _redact_struct(self, value: Struct) -> Struct:
        return msgspec.convert(redact_record(msgspec.to_builtins(value), self._redact), type(value))
