"""What a summary may not lose: names, numbers, places and errors, found without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_WORD = 300
LONGEST_ERROR = 200

_URL = re.compile(r"https?://[^\s<>\"')\]}]+")
_PATH = re.compile(r"(?:[\w.~@+-]+)?(?:/[\w.@+-]+)+|\b[\w-]{2,}\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_NUMBER = re.compile(r"\d+(?:[.,_:-]\d+)*")
_NAME = re.compile(r"\b(?:[a-z][a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w*[A-Za-z0-9]_[A-Za-z0-9]\w*)\b")
_QUOTED = re.compile(r"`([^`\n]{1,120})`")
_ERROR = re.compile(r"\b(?:\w*(?:error|exception)|fatal|panic|failed|failure|traceback)\b", re.IGNORECASE)


def facts(texts: Iterable[str]) -> tuple[str, ...]:
    """The protected set of these texts, each once, in the order found."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    for text in texts:
        for line in text.splitlines():
            if _ERROR.search(line[:LONGEST_ERROR]):
                found[line.strip()[:LONGEST_ERROR]] = None
            found.update((quoted.strip(), None) for quoted in _QUOTED.findall(line) if quoted.strip())
            words = [word for word in dict.fromkeys(line.split()) if word not in seen]
            seen.update(words)
            for word in words:
                if not _plain(word):
                    found.update((fact, None) for fact in _in_word(word[:LONGEST_WORD]))
    return tuple(found)


def _plain(word: str) -> bool:
    """An ordinary word of prose, which is most of them."""
    bare = word.strip(".,;:!?()\"'")
    return bare.isalpha() and bare[1:].islower()


def _in_word(word: str) -> list[str]:
    """A URL or path stands for the numbers and names inside it."""
    if url := _URL.search(word):
        return [url.group().rstrip(".,;:")]
    places = [place.rstrip(".") for place in _PATH.findall(word)]
    rest = _PATH.sub(" ", word)
    digits = [number for number in _NUMBER.findall(rest) if sum(map(str.isdigit, number)) >= 3]
    return [*places, *digits, *_NAME.findall(rest)]


def missing(text: str, wanted: Iterable[str]) -> list[str]:
    """The facts a text does not hold."""
    return [fact for fact in wanted if fact not in text]
