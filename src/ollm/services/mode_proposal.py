"""Propose another mode if a message fits it better than the current one."""

from __future__ import annotations

import re

from ollm.domain.context import ModeName
from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data

MIN_CONFIDENCE_SHARE = 0.75
MAX_LOOKED_CHARS = 4000  # characters of a message

MODE_SIGNS: dict[ModeName, re.Pattern[str]] = {
    "debug": compile_late(
        r"\b(debug|traceback|stack ?trace|crash(?:es|ed|ing)?|segfault|regression|"
        r"why (?:does|is|did)\b.{0,60}\bfail\w*|fail(?:s|ed|ing)? tests?|tests? fail\w*|throws|exception|bug)\b",
        re.IGNORECASE,
    ),
    "plan": compile_late(
        r"\b(make a plan|plan (?:for|how|the|to|out)|design|architect\w*|approach(?:es)?|strategy|roadmap|"
        r"how would you|trade-?offs?|before (?:you )?(?:change|cod|writ|implement)\w*)\b",
        re.IGNORECASE,
    ),
    "code": compile_late(
        r"\b(implement|refactor|rename|write (?:a|the|some|tests?)|add (?:a|an|the|tests?|support)|"
        r"create (?:a|an|the)|fix (?:the|this|it)|change the|update the|remove the|port (?:this|the)|migrate)\b",
        re.IGNORECASE,
    ),
    "assistant": compile_late(
        r"\b(explain|what (?:is|are|does)|who|difference between|tell me|summari[sz]e|how does|meaning of)\b",
        re.IGNORECASE,
    ),
}


class ModeProposal(Data, frozen=True):
    mode: ModeName
    confidence: float


def propose_mode(text: str, current: ModeName) -> ModeProposal | None:
    """Propose the mode that a message clearly fits better than the current one, or return None."""
    text = text[:MAX_LOOKED_CHARS]
    hits = {mode: len({hit[0].lower() for hit in signs.finditer(text)}) for mode, signs in MODE_SIGNS.items()}
    best = max(hits, key=lambda mode: hits[mode])
    rivals = sum(hits.values()) - hits[best]
    confidence = 0.6 + 0.2 * hits[best] - 0.1 * rivals if hits[best] else 0.0
    if best == current or hits[current] >= hits[best] or confidence < MIN_CONFIDENCE_SHARE:
        return None
    return ModeProposal(mode=best, confidence=round(min(0.95, confidence), 2))
