"""Formats a record as one JSON line: time, level, service, operation, message, errorType, context, action."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ollm.domain.clock import format_stamp

LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}
SECRET_WORDS = ("key", "secret", "token", "password", "credential", "credentials", "authorization", "cookie")
MAX_CONTEXT_DEPTH = 6
MAX_TEXT_CHARACTERS = 8_000


def get_service_name(logger: str) -> str:
    """Return the name after `ollm` or after its package: chat_recording of `ollm.services.chat_recording.x`."""
    parts = logger.split(".")
    return parts[:3][-1] if parts[0] == "ollm" else logger


class JsonLineFormatter(logging.Formatter):
    """Formatter that redacts and truncates every text."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": format_stamp(datetime.fromtimestamp(record.created, UTC)),
            "level": LEVELS.get(record.levelname, record.levelname),
            "service": get_service_name(record.name),
            "operation": self._clean_value(getattr(record, "operation", None)),
            "message": self._clean_value(record.getMessage()),
            "errorType": self._get_error_type(record),
            "context": self._build_context(record),
            "action": self._clean_value(getattr(record, "action", None) or None),
        }
        return json.dumps(line, ensure_ascii=False)

    def _get_error_type(self, record: logging.LogRecord) -> str | None:
        named = getattr(record, "errorType", None) or getattr(record, "error_type", None)
        if named is None and record.exc_info and record.exc_info[0] is not None:
            named = record.exc_info[0].__name__
        return None if named is None else str(named)

    def _build_context(self, record: logging.LogRecord) -> dict[str, Any]:
        given = getattr(record, "context", None)
        context = self._clean_value(given) if isinstance(given, Mapping) else {}
        if record.exc_info and record.exc_info[1] is not None:
            context["trace"] = self._clean_value("".join(traceback.format_exception(record.exc_info[1])))
        return dict(context)

    def _clean_value(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping) and depth < MAX_CONTEXT_DEPTH:
            return {str(key): self._clean_entry(str(key), item, depth) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset) and depth < MAX_CONTEXT_DEPTH:
            return [self._clean_value(item, depth + 1) for item in value]
        text = self._redact(str(value))
        return (
            text
            if len(text) <= MAX_TEXT_CHARACTERS
            else f"{text[:MAX_TEXT_CHARACTERS]}… ({len(text) - MAX_TEXT_CHARACTERS} more characters)"
        )

    def _clean_entry(self, key: str, value: Any, depth: int) -> Any:
        """Clean a value; if its key names a secret, mask all of it, except numbers such as token counts."""
        secret = not isinstance(value, bool | int | float | None) and key.lower().endswith(SECRET_WORDS)
        return "********" if secret else self._clean_value(value, depth + 1)
