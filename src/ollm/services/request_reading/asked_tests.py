"""Tests that a request wants added to a file of tests: how they begin, and whether they came. Pure.

A small model that is to write another test puts its assertion into the one that is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ollm.services.request_reading.plain_words import FILE_NAME, is_test
from ollm.services.request_reading.shown_files import find_shown_text

_KIND = r"(?:(?:second|third|fourth|new|further|additional|more|unit|small|simple|separate)\s+)*tests?\b"
_ASKED = re.compile(
    rf"(?:^|[.;!]\s+|\n|\band\s+|\bthen\s+)(?:please\s+|also\s+)?(?:"
    rf"(?:write|add|create|put|make|implement)\s+(?:me\s+)?(?:an?|one|another|two|three)\s+{_KIND}"
    rf"[^.;\n]*?\b(?:to|in|into)\s+(?:the\s+)?(?:file\s+)?`?(?P<path>{FILE_NAME})`?|"
    rf"(?:in|to)\s+`?(?P<before>{FILE_NAME})`?,?\s+(?:please\s+)?(?:write|add|create|put)\s+(?:an?|one|another|two)\s+{_KIND}|"
    rf"(?:i|we)\s+(?:need|want)\s+(?:an?|one|another|two)\s+{_KIND}[^.;\n]*?\b(?:to|in|into)\s+`?(?P<needed>{FILE_NAME})`?|"
    rf"(?:extend|complete)\s+`?(?P<file>{FILE_NAME})`?\s+(?:by|with)\s+(?:an?|one|another|two)\s+{_KIND})",
    re.IGNORECASE,
)
_HEAD = re.compile(r"^[ \t]*(?:async )?def (test\w*)", re.MULTILINE)
NO_NEW_TEST = "{} has no new test"


def find_asked_test(request: str) -> tuple[str, int]:
    """The file of Python that gets another test, and where the words that say so begin."""
    for found in _ASKED.finditer(request):
        path = next(filter(None, found.groups()))
        if path.endswith(".py") and is_test(path):
            return path, found.start()
    return "", 0


def begin_new_test(request: str, shown: str, *, first: bool = True) -> str:
    """The head of a test in a file of plain test functions that was shown whole; `first`: only where nothing else is
    asked for before."""
    path, place = find_asked_test(request)
    text = find_shown_text(path, shown)
    plain = re.search(r"^def test_", text, re.MULTILINE) and not re.search(r"^class ", text, re.MULTILINE)
    return f"{path}\n```python\ndef test_" if path and plain and not (first and place) else ""


def describe_missing_test(path: str, before: str, after: str, request: str) -> str:
    """That a file which gets another test would change and have none more."""
    asked, _ = find_asked_test(request)
    missing = asked and path.rpartition("/")[2] == asked.rpartition("/")[2] and before.strip() and before != after
    more = set(_HEAD.findall(after)) - set(_HEAD.findall(before))
    plain = _HEAD.search(before) and "parametrize" not in before  # where a case more may be the test
    return NO_NEW_TEST.format(path) if missing and plain and not more else ""


def find_missing_test(request: str, before: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """The step for it, where the file was changed."""
    told = [describe_missing_test(path, text, texts.get(path, text), request) for path, text in before.items()]
    return [f"{said}. Now change {said.partition(' ')[0]}." for said in told if said]
