"""Names of files that a request spells wrongly or in short: the file that is meant, where there is one alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from ollm.services.request_reading.plain_words import is_called
from ollm.services.request_reading.wanted_files import NAMED_FILE, find_made_files

MIN_LIKENESS = 0.85
MIN_WORD = 5  # of letters: short words that differ are other words
_PAGE = re.compile(
    r"(?<=\bthe )(?:readme|changelog|contributing|license|requirements|pyproject|tsconfig)\b(?!\.\w)", re.IGNORECASE
)


def mend_file_names(request: str, existing: Collection[str]) -> str:
    """The request with the names of files that are there; names of new files stay as they are."""
    made = {name for name, _ in find_made_files(request)}
    for name in dict.fromkeys(NAMED_FILE.findall(request)):
        if name in made or any(is_called(path, name) for path in existing):
            continue
        meant = [path for path in existing if _is_slip(name, path) or _is_slip(name, path.rpartition("/")[2])]
        if len(meant) == 1 and meant[0] not in request and meant[0].rpartition("/")[2] not in request:
            request = request.replace(name, meant[0])
    return _PAGE.sub(lambda found: _find_page(found[0], existing), request)


def _find_page(word: str, existing: Collection[str]) -> str:
    """`the README` as `the README.md`."""
    pages = [path for path in existing if path.lower().startswith(f"{word.lower()}.") and "/" not in path]
    return pages[0] if len(pages) == 1 else word


def _is_slip(name: str, path: str) -> bool:
    """Whether only letters of long words are wrong: `prefrences.json`, not `test_b.py` for `test_a.py`."""
    words, others = (re.split(r"[/._-]", said.lower()) for said in (name, path))
    if len(words) != len(others) or words[-1] != others[-1]:
        return False
    wrong = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return all(_is_alike(*pair) for pair in wrong)


def _is_alike(one: str, other: str) -> bool:
    from difflib import SequenceMatcher  # only where a name is not there

    if min(len(one), len(other)) < MIN_WORD or re.sub(r"\D", "", one) != re.sub(r"\D", "", other):
        return False
    return one.rstrip("s") != other.rstrip("s") and SequenceMatcher(None, one, other).ratio() >= MIN_LIKENESS
