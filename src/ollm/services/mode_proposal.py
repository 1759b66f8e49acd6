"""Propose another mode if a message fits it better than the present one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ollm.domain.context import ModeName
from ollm.domain.struct import Data

if TYPE_CHECKING:
    import re

MIN_CONFIDENCE_SHARE = 0.75
MAX_LOOKED_CHARS = 4000  # characters of a message

# What every match of a mode's signs contains, and the signs: a message without the former costs no regular expression.
MODE_SIGNS: dict[ModeName, tuple[tuple[str, ...], str]] = {
    "debug": (
        ("debug", "trace", "crash", "segfault", "regression", "fail", "throws", "exception", "bug"),
        (
            r"\b(debug|traceback|stack ?trace|crash(?:es|ed|ing)?|segfault|regression|"
            r"why (?:does|is|did)\b.{0,60}\bfail\w*|fail(?:s|ed|ing)? tests?|tests? fail\w*|throws|exception|bug)\b"
        ),
    ),
    "plan": (
        ("plan", "design", "architect", "approach", "strategy", "roadmap", "how would you", "trade", "before "),
        (
            r"\b(make a plan|plan (?:for|how|the|to|out)|design|architect\w*|approach(?:es)?|strategy|roadmap|"
            r"how would you|trade-?offs?|before (?:you )?(?:change|cod|writ|implement)\w*)\b"
        ),
    ),
    "code": (
        ("implement", "refactor", "rename", "write ", "add ", "create ", "fix ", " the", "port ", "migrate"),
        (
            r"\b(implement|refactor|rename|write (?:a|the|some|tests?)|add (?:a|an|the|tests?|support)|"
            r"create (?:a|an|the)|fix (?:the|this|it)|change the|update the|remove the|port (?:this|the)|migrate)\b"
        ),
    ),
    "assistant": (
        ("explain", "what ", "who", "difference", "tell me", "summari", "how does", "meaning of"),
        r"\b(explain|what (?:is|are|does)|who|difference between|tell me|summari[sz]e|how does|meaning of)\b",
    ),
}


class ModeProposal(Data, frozen=True):
    mode: ModeName
    confidence: float


def propose_mode(text: str, current: ModeName) -> ModeProposal | None:
    """The mode a message fits better than the current one, when that is plain enough."""
    hits = {mode: _count_hits(mode, text[:MAX_LOOKED_CHARS]) for mode in MODE_SIGNS}
    best = max(hits, key=lambda mode: hits[mode])
    rivals = sum(hits.values()) - hits[best]
    confidence = 0.6 + 0.2 * hits[best] - 0.1 * rivals if hits[best] else 0.0
    if best == current or hits[current] >= hits[best] or confidence < MIN_CONFIDENCE_SHARE:
        return None
    return ModeProposal(mode=best, confidence=round(min(0.95, confidence), 2))


def _count_hits(mode: ModeName, text: str) -> int:
    parts, _ = MODE_SIGNS[mode]
    folded = text.casefold()
    if not any(part in folded for part in parts):
        return 0
    return len({hit[0].lower() for hit in _compile_pattern(mode).finditer(text)})


@cache
def _compile_pattern(mode: ModeName) -> re.Pattern[str]:
    import re

    return re.compile(MODE_SIGNS[mode][1], re.IGNORECASE)
