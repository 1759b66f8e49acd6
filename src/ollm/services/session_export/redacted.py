"""The session with every text in it passed through a function, ids and times left as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ollm.domain.session import Session

Redact = Callable[[str], str]
_KEPT = {"id", "sessionId", "timestamp", "startTime", "lastActivity", "role", "type", "status", "data", "mediaType"}


def redacted_session(session: Session, redact: Redact) -> Session:
    return msgspec.convert(_redacted(msgspec.to_builtins(session), redact), Session)


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: item if name in _KEPT else _redacted(item, redact) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, redact) for item in value]
    return value
