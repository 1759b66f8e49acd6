"""Facts no summary or shortened line may lose: names, numbers, places and errors, found without a model.

Only what people, the model and tools said is looked at: our own markers are taken out first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ollm.domain.lazy import compile_late

MAX_WORD_CHARS = 300
MAX_ERROR_CHARS = 200

_URL = compile_late(r"https?://[^\s<>\"')\]}]+")
_PATH = compile_late(r"(?:[\w.~@+-]+)?(?:/[\w.@+-]+)+|\b[\w-]{2,}\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_NUMBER = compile_late(r"\d+(?:[.,_:-]\d+)*")
_NAME = compile_late(r"\b(?:[a-z][a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|\w*[A-Za-z0-9]_[A-Za-z0-9]\w*)\b")
_QUOTED = compile_late(r"`([^`\n]{1,120})`")
_ERROR = compile_late(r"\b(?:\w*(?:error|exception)|fatal|panic|failed|failure|traceback)\b", re.IGNORECASE)
# What the engine writes into a context: where something was left out, and what stands for old messages.
_MARKERS = compile_late(
    r"\[\.\.\. .*?left out.*?\]"
    r"|\[(?:Folded messages|Record of messages|Results of this step|Goals and decisions)[^\]\n]*\]?"
    r"|Summary of messages [\d, -]+:"
    r"|recall \{[^}\n]*\}"
    r"|\[[^\]\n]*characters left out[^\]\n]*\]"
    r"|\((?:cut|shown)[^)\n]*recall[^)\n]*\)"
)


def strip_markers(text: str) -> str:
    """The text as it was said, as far as it is still there."""
    return _MARKERS.sub(" ", text) if "[" in text or "recall" in text else text


def find_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """The protected set of these texts, each once, in the order found."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    for text in map(strip_markers, texts):
        for line in text.splitlines():
            if _ERROR.search(line[:MAX_ERROR_CHARS]):
                found[line.strip()[:MAX_ERROR_CHARS]] = None
            found.update((quoted.strip(), None) for quoted in _QUOTED.findall(line) if quoted.strip())
            words = [word for word in dict.fromkeys(line.split()) if word not in seen]
            seen.update(words)
            for word in words:
                if not _is_plain(word):
                    found.update((fact, None) for fact in _find_in_word(word[:MAX_WORD_CHARS]))
    return tuple(found)


def _is_plain(word: str) -> bool:
    """An ordinary word of prose, which is most of them."""
    bare = word.strip(".,;:!?()\"'")
    return bare.isalpha() and bare[1:].islower()


def _find_in_word(word: str) -> list[str]:
    """A URL or path stands for the numbers and names inside it."""
    if url := _URL.search(word):
        return [url.group().rstrip(".,;:")]
    places = [place.rstrip(".") for place in _PATH.findall(word)]
    rest = _PATH.sub(" ", word)
    digits = [number for number in _NUMBER.findall(rest) if sum(map(str.isdigit, number)) >= 3]
    return [*places, *digits, *_NAME.findall(rest)]


def find_missing(text: str, wanted: Iterable[str]) -> list[str]:
    """The facts a text does not hold."""
    return [fact for fact in wanted if fact not in text]
