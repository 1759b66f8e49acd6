"""Time and ids, injected so that tests need no patching."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
NewId = Callable[[], str]
monotonic = time.monotonic


def now() -> datetime:
    return datetime.now(UTC)


def format_stamp(moment: datetime) -> str:
    """Format a time as UTC ISO 8601 with milliseconds and `Z`, the form used on disk and on the wire."""
    import msgspec  # Commands that only read times do not need it.

    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    text: str = msgspec.to_builtins(in_utc)  # It is eight times as fast as isoformat, but writes six digits or none.
    return text[: len("2026-01-27T10:00:00.000")] + "Z" if in_utc.microsecond else text[:-1] + ".000Z"


def parse_stamp(text: str) -> datetime:
    """Parse an ISO 8601 time. A time without a zone is read as UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_age(moment: str | int) -> str:
    """Format a stamp or epoch milliseconds as an age such as `3 min ago`, or as a date if it is old."""
    try:
        then = datetime.fromtimestamp(moment / 1000, UTC) if isinstance(moment, int) else parse_stamp(moment)
    except (ValueError, TypeError, OverflowError):
        return ""
    seconds = (now() - then).total_seconds()
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if size <= seconds < 30 * 86400:
            return f"{int(seconds // size)} {name} ago"
    return "just now" if -60 < seconds < 60 else f"{then:%Y-%m-%d}"


def to_epoch_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def parse_epoch_ms(text: str) -> int:
    """Convert a written time to epoch milliseconds, or 0 if it cannot be parsed."""
    try:
        return to_epoch_ms(parse_stamp(text))
    except (TypeError, ValueError, OverflowError):
        return 0


def make_id() -> str:
    import uuid

    return str(uuid.uuid4())
