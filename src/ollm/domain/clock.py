"""Time and identity, handed in so that tests need no patching."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
NewId = Callable[[], str]


def now() -> datetime:
    return datetime.now(UTC)


def format_stamp(moment: datetime) -> str:
    """UTC, ISO 8601 with milliseconds and `Z`: the form of every time on disk and on the wire."""
    import msgspec  # not needed by commands that only read times

    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    text: str = msgspec.to_builtins(in_utc)  # six digits of a second, or none: eight times as fast as isoformat
    return text[: len("2026-01-27T10:00:00.000")] + "Z" if in_utc.microsecond else text[:-1] + ".000Z"


def parse_stamp(text: str) -> datetime:
    """Read any ISO 8601 time; one without a zone is taken as UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_age(moment: str | int) -> str:
    """A stamp, or epoch milliseconds, in the words people use: `3 min ago`; old ones by their day."""
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
    """Milliseconds of a time that somebody wrote; 0 where it makes no sense."""
    try:
        return to_epoch_ms(parse_stamp(text))
    except (TypeError, ValueError, OverflowError):
        return 0


def monotonic() -> float:
    return time.monotonic()


def make_id() -> str:
    import uuid

    return str(uuid.uuid4())
