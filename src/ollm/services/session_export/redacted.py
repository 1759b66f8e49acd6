"""A session with every text in it passed through a function, ids and times left as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.source import Readable

Redact = Callable[[str], str]
Struct = TypeVar("Struct", Message, ToolCallRecord, Session)
_KEPT = {"id", "sessionId", "timestamp", "startTime", "lastActivity", "role", "type", "status", "data", "mediaType"}


class RedactedSession:
    """Reads another session piece by piece and hands it on without its secrets."""

    def __init__(self, source: Readable, redact: Redact) -> None:
        self._source = source
        self._redact = redact
        self.session = self._without(source.session)

    def messages(self) -> Iterator[Message]:
        return map(self._without, self._source.messages())

    def call(self, call_id: str) -> ToolCallRecord | None:
        found = self._source.call(call_id)
        return self._without(found) if found else None

    def other_calls(self) -> Iterator[ToolCallRecord]:
        return map(self._without, self._source.other_calls())

    def document(self) -> Iterator[bytes]:
        """As one JSON document."""
        from ollm.store.session_files.layout import document

        encode = msgspec.json.Encoder().encode
        head = msgspec.to_builtins(self.session)
        return document(head, map(encode, self.messages()), map(encode, self.other_calls()))

    def _without(self, value: Struct) -> Struct:
        return msgspec.convert(_redacted(msgspec.to_builtins(value), self._redact), type(value))


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: item if name in _KEPT else _redacted(item, redact) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, redact) for item in value]
    return value
