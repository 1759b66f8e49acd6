"""What is exported: a session that is read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord


class ExportSource(Protocol):
    """As `SessionStream` of the store has it; `session` holds neither messages nor calls."""

    @property
    def session(self) -> Session: ...

    def iter_messages(self) -> Iterator[Message]: ...

    def find_call(self, call_id: str) -> ToolCallRecord | None: ...

    def iter_other_calls(self) -> Iterator[ToolCallRecord]: ...
