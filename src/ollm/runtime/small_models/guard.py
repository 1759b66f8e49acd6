"""Refuses blocks that would make a file unparsable or remove definitions, once each."""

from __future__ import annotations

import re

from ollm.runtime.small_models.placement import list_defined_names
from ollm.services.syntax_check import describe_lost_syntax

MAX_REFUSALS = 1  # Later blocks for the file are applied in this turn, and their problem is reported.
MIN_LOST_LINES = 3
LOST_SHARE = 0.4  # A page or settings file that loses this share of its lines seems cut.
HARMS = "Nothing was changed: with this block {}."


class BlockGuard:
    """A guard for one turn. `typed` is the user's text: definitions it names may be removed."""

    def __init__(self, typed: str) -> None:
        self._typed = typed
        self._refused: dict[str, int] = {}

    def find_harm(self, path: str, before: str | None, after: str) -> str:
        """Return why a block is refused, or "" if it does no harm or was refused before."""
        if self._refused.get(path, 0) >= MAX_REFUSALS:
            return ""
        told = describe_lost_syntax(path, before or None, after) or self._describe_loss(path, before or "", after)
        if not told:
            return ""
        self._refused[path] = self._refused.get(path, 0) + 1
        return HARMS.format(told.rstrip("."))

    def _describe_loss(self, path: str, before: str, after: str) -> str:
        gone = _list_names(path, before) - _list_names(path, after)
        lost = sorted(name for name in gone if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._typed))
        if lost:
            return f"{path} loses {', '.join(lost)}"
        lines, left = (sum(bool(line.strip()) for line in text.splitlines()) for text in (before, after))
        cut = not gone and lines - left >= max(MIN_LOST_LINES, LOST_SHARE * lines)
        return f"{path} loses {lines - left} of {lines} lines" if cut else ""


def _list_names(path: str, text: str) -> set[str]:
    """List the definitions in a text, or the keys of JSON."""
    if not path.endswith(".json"):
        return list_defined_names(text)
    import json

    names: set[str] = set()
    try:
        json.loads(text, object_hook=names.update)
    except (ValueError, RecursionError):
        return set()
    return names
