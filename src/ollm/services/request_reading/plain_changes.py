"""Small changes that a request says in full, where a small model makes more of them or others: the command for the
first, and the steps for those that are left. Pure: words in, commands out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ollm.services.request_reading.added_lines import find_line_command, find_line_steps
from ollm.services.request_reading.check_boxes import find_box_command, find_box_steps
from ollm.services.request_reading.comment_lines import find_comment_command, find_comment_steps
from ollm.services.request_reading.entry_names import MAX_REQUEST_CHARS
from ollm.services.request_reading.entry_settings import find_entry_command, find_value_steps
from ollm.services.request_reading.import_order import find_import_sort
from ollm.services.request_reading.setting_entries import find_entry_steps, find_removal_command

_PROGRAM = re.compile(  # what is to do it, or to be shown, and not the change itself
    r"\ban?\s+(?:\w+\s+){0,3}?(?:script|program|function|method|tests?|tool|snippet|example|helper|endpoint|page)"
    r"\s+(?:\S+\s+)?(?:that|which|to|for)\b|\b(?:write|create|build|implement)\s+an?\s",
    re.IGNORECASE,
)


def find_plain_command(request: str, primed: str) -> str:
    """A box that is ticked, a line that is commented out, one that is added to an entry, values that it gets, an entry
    that goes, or imports that are sorted."""
    if len(request) > MAX_REQUEST_CHARS or _PROGRAM.search(request) or "\r" in primed:
        return ""  # sed would mix the ends of lines
    found = find_box_command(request, primed) or find_comment_command(request, primed)
    found = found or find_line_command(request, primed) or find_entry_command(request, primed)
    return found or find_removal_command(request, primed) or find_import_sort(request, primed)


def find_plain_steps(request: str, texts: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """What of that, and of entries that go or get a value, has not happened. `texts` are the files that the request is
    about or that were changed, `before` the latter as they were."""
    if len(request) > MAX_REQUEST_CHARS or _PROGRAM.search(request):
        return []
    texts = {path: text for path, text in texts.items() if "\r" not in text}
    return [
        *find_entry_steps(request, texts, before),
        *find_box_steps(request, texts),
        *find_comment_steps(request, texts, before),
        *find_line_steps(request, texts),
        *find_value_steps(request, texts),
    ]
