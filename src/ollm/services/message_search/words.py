"""Words for looking things up: those without meaning in a question, stems, and stems that mean the same."""

from __future__ import annotations

from functools import cache, lru_cache

from ollm.services.message_search.meanings import GROUPS

_PLAIN = (
    "a about after again all also am an and any anything are as at be because been before being between "
    "both but by can come comes could did do does doing done during each else ever every for from get give given "
    "go goes going had has have having he her here hers him his how i if in into is it its itself just know last let "
    "like make many me mention mentioned might more most much must my name need no nor not now of off "
    "often oh okay on once one only or other our ours out over own please put said same say see shall she should "
    "so some somebody someone something such supposed tell than that the their theirs them then there "
    "these they thing things this those through thus to told too under until up use used uses using very "
    "want was we were what whatever when where whether which while who whom whose why will with within "
    "without would you your yours "
)
STOP_WORDS = frozenset(_PLAIN.split())

SUFFIXES = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ness",
    "ions",
    "ion",
    "ies",
    "ers",
    "er",
    "ed",
    "es",
    "s",
    "e",
    "y",
)


_IRREGULAR = {
    form: word
    for word, forms in (
        ("write", "wrote written"), ("rewrite", "rewrote rewritten"), ("run", "ran"), ("send", "sent"),
        ("keep", "kept"), ("hold", "held"), ("build", "built"), ("rebuild", "rebuilt"), ("lose", "lost"),
        ("break", "broke broken"), ("freeze", "froze frozen"), ("choose", "chose chosen"), ("pay", "paid"),
        ("buy", "bought"), ("sell", "sold"), ("take", "took taken"), ("begin", "began begun"), ("find", "found"),
        ("meet", "met"), ("grow", "grew grown"), ("draw", "drew drawn"), ("drive", "drove driven"),
        ("fall", "fell fallen"), ("hide", "hid hidden"), ("teach", "taught"), ("throw", "threw thrown"),
        ("redo", "redid redone"), ("leave", "left"), ("speak", "spoke spoken"), ("person", "people"),
        ("index", "indices indexes"), ("cost", "costs"), ("come", "came"), ("bring", "brought"), ("catch", "caught"),
    )
    for form in forms.split()
}  # fmt: skip


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without the ending that only grammar asks for."""
    word = _IRREGULAR.get(word, word)
    if not word.isascii() or any(map(str.isdigit, word)):
        return word
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    doubled = len(word) > 3 and word[-1] == word[-2]
    return word[:-1] if doubled else word


@cache
def get_meanings() -> dict[str, tuple[str, ...]]:
    """By stem, the stems that mean the same."""
    found: dict[str, dict[str, None]] = {}
    for group in GROUPS:
        stems = dict.fromkeys(stem(word) for word in group.split())
        for word in stems:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in stems if other != word))
    return {word: tuple(others) for word, others in found.items()}
