"""The command that sorts the imports of a module of Python, where they are all of one kind. Pure: words in, a command
out."""

from __future__ import annotations

import re

from ollm.services.request_reading.plain_words import FILE_NAME
from ollm.services.request_reading.shown_files import find_shown_text

_SORTED = re.compile(
    r"\s*(?:please\s+)?(?:sort|order|alphabeti[sz]e|put)\s+(?:all\s+)?(?:the\s+)?(?:import\s+(?:statements|lines)|imports?)\s+"
    rf"(?:(?:in|of|at\s+the\s+top\s+of)\s+`?(?P<path>{FILE_NAME})`?\s*(?P<how>.*)|(?P<before>.*?)\s+(?:in|of)\s+`?(?P<file>{FILE_NAME})`?)",
    re.IGNORECASE | re.DOTALL,
)
_ALPHABET = re.compile(
    r"(?:alphabetically|by\s+name|(?:in|into)\s+alphabetical\s+order|from\s+a\s+to\s+z)?[.!]?\s*$", re.IGNORECASE
)
_PLAIN = re.compile(r"import [A-Za-z_][\w.]*")


def find_import_sort(request: str, primed: str) -> str:
    """Empty unless the file was shown whole and all its imports are `import NAME`, one below the other at its top."""
    found = _SORTED.match(request)
    path = (found["path"] or found["file"]) if found else ""
    how = (found["how"] if found["path"] else found["before"]) if found else None
    if how is None or not path.endswith(".py") or not _ALPHABET.match(how):
        return ""
    if not how.strip(" .!\n") and not re.match(r"\s*(?:please\s+)?(?:sort|order|alphabeti)", request, re.IGNORECASE):
        return ""
    shown = find_shown_text(path, primed)
    lines = shown.split("\n")
    places = [number for number, line in enumerate(lines) if re.match(r"(?:import|from)\b", line)]
    imports = [lines[number] for number in places]
    together = places and places == list(range(places[0], places[0] + len(places)))
    if not together or not all(map(_PLAIN.fullmatch, imports)) or len(set(imports)) != len(imports):
        return ""
    wanted = sorted(imports, key=str.lower)
    edits = [
        f"-e '{number + 1}s/.*/{new}/'" for number, new in zip(places, wanted, strict=True) if lines[number] != new
    ]
    return f"sed -i {' '.join(edits)} {path}" if edits else ""
