"""A session with every text passed through a function. Ids and times stay unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.markdown import ExportSource

Redact = Callable[[str], str]
Struct = TypeVar("Struct", Message, ToolCallRecord, Session)
_UNREDACTED_FIELDS = {
    "id",
    "sessionId",
    "timestamp",
    "startTime",
    "lastActivity",
    "role",
    "type",
    "status",
    "data",
    "mediaType",
}


class RedactedSession:
    """Streams another session with its secrets redacted."""

    def __init__(self, source: ExportSource, redact: Redact) -> None:
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
        return msgspec.convert(_redact_value(msgspec.to_builtins(value), self._redact), type(value))


def _redact_value(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            name: item if name in _UNREDACTED_FIELDS else _redact_value(item, redact) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_value(item, redact) for item in value]
    return value
