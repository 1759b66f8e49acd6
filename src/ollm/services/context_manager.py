"""Context entries: additions to the system prompt by hooks, extensions, files and the user (S5)."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from typing import get_args

from msgspec.structs import replace

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
        entry = ContextEntry(
            key=key,
            content=content,
            timestamp="",
            priority=priority,
            source=source,  # type: ignore[arg-type] # looked up below
            ttl_seconds=ttl_seconds,
            volatile=volatile,
        )
        return self.add_entry(entry)

    def add_entry(self, entry: ContextEntry) -> bool:
        """Add an entry from a file, a hook or an extension, which is as old as this call."""
        if fault := _find_fault(entry):
            self._warn(f"Context entry {str(entry.key)[:60]!r} was skipped: {fault}.")
            return False
        self._entries[entry.key] = replace(entry, timestamp=format_stamp(self._clock()))
        return True

    def restore_entry(self, entry: ContextEntry) -> None:
        """Restore an earlier entry with its timestamp. If it has expired, the next turn drops it."""
        if not _find_fault(entry):
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
    return math.inf if entry.ttl_seconds is None else parse_stamp(entry.timestamp).timestamp() + entry.ttl_seconds


def _find_fault(entry: ContextEntry) -> str:
    """Return the first rule that an entry breaks, or "". Hooks and extensions may pass values of any type."""
    key, content, ttl = entry.key, entry.content, entry.ttl_seconds
    named, filled = isinstance(key, str) and key.strip(), isinstance(content, str) and content.strip()
    rules = {
        "its key is empty": not named,
        f"its key is longer than {MAX_KEY_CHARS} characters": named and len(key) > MAX_KEY_CHARS,
        "its key contains control characters": named and re.search(_NOT_IN_KEYS, key),
        "it has no content": not filled,
        "its content contains control characters": filled and re.search(_NOT_IN_CONTENT, content),
        "its priority is not a finite number": not _is_number(entry.priority),
        f"its source is not one of {', '.join(SOURCES)}": entry.source not in SOURCES,
        "its TTL is not a positive number of seconds": ttl is not None and not (_is_number(ttl) and ttl > 0),
    }
    return next((fault for fault, broken in rules.items() if broken), "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
