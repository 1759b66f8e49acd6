"""The step that is left as a small model is told it: with the file it names as that is now."""

from __future__ import annotations

import re
from collections.abc import Callable

from ollm.runtime.calls.project_files import ProjectFiles

MAX_SHOWN_CHARS = 2_400  # of a file that is shown again with the step that is left
TARGET = re.compile(r"Now (?:change|mend) (\S+?)(?: too)?\.$")
_PART = re.compile(r"Now change (\w+) in (\S+)\.$")


def show_step(step: str, files: ProjectFiles, request: str, find_path: Callable[[str], str]) -> str:
    """What was shown of the file before may be old, and is far away."""
    from ollm.services.request_reading.excerpts import find_words, show_excerpt
    from ollm.services.request_reading.named_parts import find_named_definition
    from ollm.services.request_reading.primed_request import is_short, show_whole

    if part := _PART.search(step):
        found = find_named_definition(part[2], part[1], files.read_texts([part[2]]))
        return f"{part[1]} in {part[2]} is now:\n```\n{found.text}\n```\n\n{step}" if found else step
    named = TARGET.search(step)
    path = find_path(named[1]) if named else ""
    text = files.read_text(path) if path else None
    if not text:
        return step
    shown = show_whole(path, text) if is_short(text) else show_excerpt(path, text, request, find_words(request))
    if len(shown) > MAX_SHOWN_CHARS:
        return step
    if is_short(text):
        files.remember_whole(path)
    return f"{shown}\n\n{step}"
