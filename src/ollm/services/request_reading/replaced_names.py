"""A word that is to become another one, as the request says it, and where it still occurs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ollm.domain.struct import Data
from ollm.services.request_reading.plain_words import FILE_NAME, is_ordered, split_sentences, strip_prohibition
from ollm.services.request_reading.reservations import SUPPOSED

_KIND = (
    r"(?:the\s+|every\s+|all\s+|each\s+)*(?:(?P<kind>functions?|class|method|variable|constant|parameter|colou?r|version|text|"
    r"word|name|string|identifier|attribute|field|key|option|module)s?\s+)?(?:(?:name|number|of)\s+)?"
)
_WORD = r"[#\w](?:[\w.#-]*\w)?"
_OLD = rf"(?:(?P<mark>[`'\"])(?P<phrase>[^`'\"\n]+)(?P=mark)|(?P<old>{_WORD})(?:\(\))?)"
_NEW = rf"(?:(?P<end>[`'\"])(?P<written>[^`'\"\n]+)(?P=end)|(?P<new>{_WORD})(?:\(\))?)"
_PLACE = r"(?:\s+(?:of|in|on|from|inside)\s+(?:the\s+)?(?:(?:class|module|file)\s+)?`?\w[\w./-]*`?)?"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\brename\s+{_KIND}{_OLD}{_PLACE}\s+(?:to|into|as)\s+{_NEW}",
        rf"\b(?:replace|substitute)\s+{_KIND}{_OLD}\s+(?:everywhere\s+)?(?:by|with)\s+{_NEW}",
        rf"\b(?:raise|bump|change|update|switch|increase|lift)\s+{_KIND}(?:\w+\s+)*?from\s+{_OLD}\s+to\s+{_NEW}",
        (
            rf"(?:^|[:,.]\s+|\band\s+|\bthe\s+(?:function|class|method|variable|constant)\s+){_OLD}\s+"
            rf"(?:should|must|ought\s+to|has\s+to)\s+(?:now\s+)?be\s+(?:called|named|renamed(?:\s+(?:to|into|as))?)\s+{_NEW}"
        ),
        rf"\bchange\s+(?:every|all|each)\s+(?:occurrences?\s+of\s+)?{_OLD}\s+(?:to|into)\s+{_NEW}",
    )
)
_NO_WORDS = frozenset(
    "a an the something another one its their this that these those some any more whatever".split()  # noqa: SIM905
)
_LIMITED = re.compile(
    rf"{SUPPOSED.pattern}|^or\b|\b(?:except|alias(?:es)?|(?:old|both)\s+names?|backwards?|keep\s+(?:it|the\s+old))\b",
    re.IGNORECASE,
)
_FILE_ENDING = re.compile(r"\.(?:py|txt|md|js|ts|json|ya?ml|toml|ini|cfg|conf|csv|sh|html|css|log|rst|bak)$")
_PLACES = (("phrase", "old"), ("written", "new"))  # in quotes it may be several words
_CALLED = frozenset({"function", "functions", "method"})


class WordChange(Data, frozen=True):
    """`called`: it is a function, and only its uses count, not the word in a sentence."""

    old: str
    new: str
    called: bool = False


def find_replacement(request: str) -> WordChange | None:
    """The word that is to go and the one that takes its place; none where a file is renamed or the word says little."""
    for pattern in _PATTERNS:
        found = next((one for one in pattern.finditer(request) if is_ordered(request, one.start())), None)
        if found is None:
            continue
        old, new = ((found[quoted] or found[bare]).removesuffix("()") for quoted, bare in _PLACES)
        described = not found["written"] and new.lower() in _NO_WORDS  # `by a class`
        holds_old = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", new)
        if is_distinct(old) and not holds_old and not described and not _is_limited(request, found.end()):
            kind = found.groupdict().get("kind") or ""
            return WordChange(old=old, new=new, called=kind.lower() in _CALLED)
    return None


def _is_limited(request: str, place: int) -> bool:
    """Whether the rest of the sentence says that the old word stays somewhere, or goes only then. Files that are kept
    are told by their names."""
    rest = next(iter(split_sentences(strip_prohibition(request[place:]))), "")
    return _LIMITED.search(rest) is not None or (
        re.search(FILE_NAME, request) is None and re.search(r"\bonly\b", rest) is not None
    )


def is_distinct(word: str) -> bool:
    """Whether a word is unlikely to occur by chance."""
    return len(word) >= 3 and not word.isdigit() and not _FILE_ENDING.search(word)


def find_left_over(wanted: WordChange, texts: Mapping[str, str]) -> list[str]:
    """The files in which the old word still occurs."""
    word = re.escape(wanted.old)
    pattern = (
        rf"(?<![\w.-]){word}(?![\w-])"
        if not wanted.called
        else (rf"\b{word}\s*\(|\b(?:def|function|class)\s+{word}\b|\bimport\b[^\n]*\b{word}\b|\.{word}\b")
    )
    return [name for name, text in texts.items() if re.search(pattern, text)]


def escape_for_sed(text: str) -> str:
    """A pattern of sed that matches exactly this text."""
    return re.sub(r"([.\[\]*^$/\\&])", r"\\\1", text)


def escape_replacement(text: str) -> str:
    """A replacement of sed that writes exactly this text."""
    return re.sub(r"([/\\&])", r"\\\1", text)
