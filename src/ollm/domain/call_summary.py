"""A recorded tool call in the words it had when it ran (`Run pytest -q`, `Edit shop/cart.py (1 edit)`), and what a
person answered when they were asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, GrantScope

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
    "outline": ("Outline", "path"),
    "read_many_files": ("Read", "paths"),
    "recall": ("Search the conversation for", "query"),
    "task": ("Task:", "prompt"),
    "memory": ("Memory:", "action"),
    "goal": ("Note", "action"),
    "write_todos": ("Todos:", "action"),
}
SCOPE_WORDS: dict[GrantScope, str] = {
    "once": "yes",
    "session": "yes, for this session",
    "always": "yes, always in this workspace",
    "everywhere": "yes, everywhere",
}


def summarize_call(name: str, arguments: Mapping[str, Any]) -> str:
    """What was done to what; the tool's name where that is not known."""
    verb, key = _WORDS.get(name, ("", ""))
    given = arguments.get(key, "") if key else ""
    value = ", ".join(map(str, given)) if isinstance(given, list) else str(given)
    if not value:
        return name
    edits = arguments.get("edits")
    count = f" ({len(edits)} edit{'s' * (len(edits) != 1)})" if isinstance(edits, list) and edits else ""
    return f"{verb} {' '.join(value.split())[:MAX_VALUE_CHARS]}{count}"


def describe_answer(details: ConfirmationDetails, answer: ConfirmationAnswer | None) -> str:
    """What was said to a question, as it is shown below it."""
    if answer is None:
        return "no answer in time"
    if not answer.approved:
        return f"no: {answer.reason}" if answer.reason else "no"
    if details.typed:
        return answer.text or "(empty)"
    if answer.text:
        return f"yes, {answer.text}"
    granted = details.prefix if answer.prefix else details.grant
    return SCOPE_WORDS[answer.scope] + (f" ({granted})" if granted and answer.scope != "once" else "")
