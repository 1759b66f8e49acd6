"""What went with a request, read back: the names of files, and the texts of those that were shown whole. Pure."""

from __future__ import annotations

import re

MORE = re.compile(r" and \d+ more$", re.MULTILINE)  # behind the names, where there are too many
_NAMES = "Files here: "
_WHOLE = re.compile(r"^(\S+):\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def list_shown_names(primed: str) -> list[str]:
    """The files whose names went with the request."""
    return MORE.sub("", primed.partition(_NAMES)[2].partition("\n")[0]).split(", ")


def list_shown_texts(primed: str) -> list[tuple[str, str]]:
    """The files that were shown whole, with their texts; those that a page only quotes are left out."""
    found = _WHOLE.findall(primed)
    listed = set(list_shown_names(primed)) if _NAMES in primed else {path for path, _ in found}
    return [(path, text) for path, text in found if path in listed and _is_shown_once(path, primed)]


def _is_shown_once(path: str, primed: str) -> bool:
    return len(re.findall(rf"^{re.escape(path)}(?::| is long [^\n]*:)\n```\n", primed, re.MULTILINE)) == 1


def find_shown_text(path: str, shown: str) -> str:
    """The text of a file as it was shown last, without its last line break; empty where it was not."""
    _, mark, rest = f"\n{shown}".rpartition(f"\n{path}:\n```\n")
    return rest.partition("\n```")[0] if mark else ""
