"""Context entries: additions to the system prompt by hooks, extensions, files and the user (S5)."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import get_args

from ollm.domain.clock import Clock, format_stamp, now, parse_stamp
from ollm.domain.context import ContextEntry, EntrySource

DEFAULT_PRIORITY = 50.0
MAX_KEY_CHARS = 200
SOURCES: tuple[str, ...] = get_args(EntrySource)
SOURCE_TITLES = {
    "hook": "From a hook",
    "extension": "From an extension",
    "user": "From the user",
    "system": "From the project",
}

_log = logging.getLogger(__name__)
_NOT_IN_KEYS = "[\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_NOT_IN_CONTENT = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"


class ContextManager:
    """Entries by key. Adding a key again replaces its content and keeps its place.

    `begin_turn` fixes the entries for a turn: an entry that expires during a turn stays until the next one, so the
    start of the prompt does not change. An invalid entry is skipped with one warning.
    """

    def __init__(self, clock: Clock = now, warn: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._warn = warn or _log.warning
        self._entries: dict[str, ContextEntry] = {}

    def add_context(
        self,
        key: str,
        content: str,
        *,
        priority: float = DEFAULT_PRIORITY,
        source: str = "user",
        ttl_seconds: float | None = None,
        volatile: bool = False,
    ) -> bool:
        """Add an entry. Returns False and warns if it is invalid. An identical entry does not change the prompt."""
        fault = _find_fault(key, content, priority, source, ttl_seconds)
        if fault:
            self._warn(f"Context entry {str(key)[:60]!r} was skipped: {fault}.")
            return False
        self._entries[key] = ContextEntry(
            key=key,
            content=content,
            timestamp=format_stamp(self._clock()),
            priority=priority,
            source=source,  # type: ignore[arg-type] # _fault looked it up
            ttl_seconds=ttl_seconds,
            volatile=volatile,
        )
        return True

    def add_entry(self, entry: ContextEntry) -> bool:
        """Add an entry from a file, a hook or an extension."""
        fields = {name: getattr(entry, name) for name in ("priority", "source", "ttl_seconds", "volatile")}
        return self.add_context(entry.key, entry.content, **fields)

    def restore_entry(self, entry: ContextEntry) -> None:
        """Restore an earlier entry with its timestamp. If it has expired, the next turn drops it."""
        if not _find_fault(entry.key, entry.content, entry.priority, entry.source, entry.ttl_seconds):
            self._entries[entry.key] = entry

    def remove_context(self, key: str) -> bool:
        """Remove an entry. Returns False if it does not exist."""
        return self._entries.pop(key, None) is not None

    def clear_context(self, source: EntrySource | None = None) -> int:
        """Remove all entries, or those of one source. Returns the number removed."""
        gone = [key for key, entry in self._entries.items() if source in (None, entry.source)]
        for key in gone:
            del self._entries[key]
        return len(gone)

    def begin_turn(self) -> tuple[str, ...]:
        """Drop expired entries and return their keys."""
        moment = self._clock()
        gone = tuple(entry.key for entry in self._entries.values() if _compute_expiry(entry) <= moment.timestamp())
        for key in gone:
            del self._entries[key]
        return gone

    def get_context(self) -> list[ContextEntry]:
        """Return all entries, highest priority first, then by insertion."""
        return sorted(self._entries.values(), key=lambda entry: -entry.priority)

    def get_system_prompt_additions(self) -> str:
        """Render all entries except the volatile ones as Markdown sections."""
        return render_entries(self.get_standing_entries())

    def get_standing_entries(self) -> list[ContextEntry]:
        return [entry for entry in self.get_context() if not entry.volatile]

    def render_volatile_entries(self) -> str:
        """Render the entries that accompany the newest user message instead of the system prompt."""
        return render_entries([entry for entry in self.get_context() if entry.volatile])

    def has_context(self, key: str) -> bool:
        return key in self._entries

    def get_context_by_source(self, source: str) -> list[ContextEntry]:
        return [entry for entry in self.get_context() if entry.source == source]


def render_entries(entries: list[ContextEntry]) -> str:
    """Render one section per entry, titled by source and key. Omits the time, so that output is stable."""
    return "\n\n".join(f"## {_name_source(entry)}: {entry.key}\n\n{entry.content}" for entry in entries)


def _name_source(entry: ContextEntry) -> str:
    """Name the source. Volatile system entries come from ollm, not the project."""
    return "From ollm" if entry.source == "system" and entry.volatile else SOURCE_TITLES[entry.source]


def fit_entries(
    entries: list[ContextEntry], cost: Callable[[str], int], cap: int
) -> tuple[list[ContextEntry], list[ContextEntry]]:
    """Split entries into those that fit into `cap` tokens together and the rest, which have the lowest priorities."""
    kept: list[ContextEntry] = []
    used = 0
    for place, entry in enumerate(entries):
        used += cost(render_entries([entry]))
        if used > cap:
            return kept, entries[place:]
        kept.append(entry)
    return kept, []


def _compute_expiry(entry: ContextEntry) -> float:
    if entry.ttl_seconds is None:
        return math.inf
    try:
        return (parse_stamp(entry.timestamp) + timedelta(seconds=entry.ttl_seconds)).timestamp()
    except OverflowError:
        return math.inf


def _find_fault(key: object, content: object, priority: object, source: object, ttl: object) -> str:  # noqa: PLR0911 - one line a rule
    if not isinstance(key, str) or not key.strip():
        return "its key is empty"
    if len(key) > MAX_KEY_CHARS:
        return f"its key is longer than {MAX_KEY_CHARS} characters"
    if re.search(_NOT_IN_KEYS, key):
        return "its key contains control characters"
    if not isinstance(content, str) or not content.strip():
        return "it has no content"
    if re.search(_NOT_IN_CONTENT, content):
        return "its content contains control characters"
    if not _is_number(priority):
        return "its priority is not a finite number"
    if source not in SOURCES:
        return f"its source is not one of {', '.join(SOURCES)}"
    if ttl is not None and not (_is_number(ttl) and ttl > 0):  # type: ignore[operator] # a number by then
        return "its TTL is not a positive number of seconds"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
