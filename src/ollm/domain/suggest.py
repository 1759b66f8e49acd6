"""Suggestions for mistyped names, the same for every command, key, tool, model and parameter."""

from __future__ import annotations

from collections.abc import Iterable

MIN_SIMILARITY = 0.6  # share of letters in place
MIN_PARTIAL_SCORE = 85  # for a name of which only a part was typed
MAX_TYPED_CHARACTERS = 100


def suggest_names(typed: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names closest to what was typed, best first; case, `-` and `_` make no difference."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import OSA

    wanted = _fold_name(typed[:MAX_TYPED_CHARACTERS])
    ranked: list[tuple[float, bool, str]] = []
    for name in dict.fromkeys(known):
        folded = _fold_name(name)
        similarity = OSA.normalized_similarity(wanted, folded)
        if similarity >= MIN_SIMILARITY or (len(wanted) > 2 and fuzz.WRatio(wanted, folded) >= MIN_PARTIAL_SCORE):
            ranked.append((-similarity, sorted(wanted) != sorted(folded), name))
    return [name for _, _, name in sorted(ranked)[:most]]


def format_suggestion(typed: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean NAME?`, or the other text when nothing is close."""
    near = suggest_names(typed, known)
    return f"did you mean {near[0]}?" if near else otherwise


def _fold_name(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
