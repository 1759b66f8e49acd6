"""A recorded tool call in the words it had when it ran: `Run pytest -q`, `Edit shop/cart.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_VALUE_CHARS = 200
_WORDS = {
    "shell": ("Run", "command"),
    "read_file": ("Read", "path"),
    "edit_file": ("Edit", "path"),
    "write_file": ("Write", "path"),
    "grep": ("Search for", "pattern"),
    "glob": ("Find files matching", "pattern"),
    "ls": ("List", "path"),
    "web_fetch": ("Fetch", "url"),
    "web_search": ("Search the web for", "query"),
}


def summarize_call(name: str, arguments: Mapping[str, Any]) -> str:
    """What was done to what; the tool's name where that is not known."""
    verb, key = _WORDS.get(name, ("", ""))
    value = str(arguments.get(key, "")) if key else ""
    return f"{verb} {' '.join(value.split())[:MAX_VALUE_CHARS]}" if value else name
