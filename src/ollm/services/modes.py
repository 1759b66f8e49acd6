"""Modes (H: modeHistory): what the model is told to be, the tools it is shown, and when another mode fits better."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ollm.domain.clock import Clock, now, stamp
from ollm.domain.context import Approval, ModeName
from ollm.domain.session import ModeChange, Trigger
from ollm.domain.struct import Data

READING = frozenset(
    {
        "read_file",
        "read_many_files",
        "glob",
        "grep",
        "ls",
        "web_fetch",
        "web_search",
        "memory",
        "write_todos",
        "recall",
        "goal",
    }
)
OURS = READING | {"write_file", "edit_file", "shell"}
SURE = 0.75


class Mode(Data, frozen=True):
    """`tools` unset means all of them; those of extensions are shown in every mode that may change things."""

    name: ModeName
    told: str
    tools: frozenset[str] | None = None
    approval: Approval | None = None


MODES: dict[ModeName, Mode] = {
    "assistant": Mode(
        name="assistant",
        told="You answer questions and explain. Look things up with your tools before you state facts about this code.",
        tools=READING,
    ),
    "plan": Mode(
        name="plan",
        told="You plan and change nothing. Read what you need, then give numbered steps and the files they touch.",
        tools=READING,
        approval="read-only",
    ),
    "code": Mode(
        name="code",
        told="You write and change code. Read before you edit, keep edits small, and run what proves that they work.",
    ),
    "debug": Mode(
        name="debug",
        told="You find causes. Reproduce the fault first, look at evidence, change one thing at a time, prove the fix.",
    ),
}

_SIGNS: dict[ModeName, re.Pattern[str]] = {
    "debug": re.compile(
        r"\b(debug|traceback|stack ?trace|crash(?:es|ed|ing)?|segfault|regression|"
        r"why (?:does|is|did)\b.{0,60}\bfail\w*|fail(?:s|ed|ing)? tests?|tests? fail\w*|throws|exception|bug)\b",
        re.IGNORECASE,
    ),
    "plan": re.compile(
        r"\b(make a plan|plan (?:for|how|the|to|out)|design|architect\w*|approach(?:es)?|strategy|roadmap|"
        r"how would you|trade-?offs?|before (?:you )?(?:change|cod|writ|implement)\w*)\b",
        re.IGNORECASE,
    ),
    "code": re.compile(
        r"\b(implement|refactor|rename|write (?:a|the|some|tests?)|add (?:a|an|the|tests?|support)|create (?:a|an|the)|"
        r"fix (?:the|this|it)|change the|update the|remove the|port (?:this|the)|migrate)\b",
        re.IGNORECASE,
    ),
    "assistant": re.compile(
        r"\b(explain|what (?:is|are|does)|who|difference between|tell me|summari[sz]e|how does|meaning of)\b",
        re.IGNORECASE,
    ),
}


class ModeProposal(Data, frozen=True):
    mode: ModeName
    confidence: float


def tools_for(mode: ModeName, names: Iterable[str]) -> tuple[str, ...]:
    """Of these tools the ones the mode shows, in their order."""
    shown = MODES[mode].tools
    if shown is None:
        return tuple(names)
    may_change = MODES[mode].approval is None
    return tuple(name for name in names if name in shown or (may_change and name not in OURS))


def propose(text: str, current: ModeName) -> ModeProposal | None:
    """The mode a message fits better than the current one, when that is plain enough."""
    hits = {mode: len({hit[0].lower() for hit in signs.finditer(text[:4000])}) for mode, signs in _SIGNS.items()}
    best = max(hits, key=lambda mode: hits[mode])
    rivals = [count for mode, count in hits.items() if mode != best and count > 0]
    confidence = 0.6 + 0.2 * hits[best] - 0.1 * sum(rivals) if hits[best] else 0.0
    if best == current or hits[current] >= hits[best] or confidence < SURE:
        return None
    return ModeProposal(mode=best, confidence=round(min(0.95, confidence), 2))


def change(
    before: ModeName, after: ModeName, trigger: Trigger, confidence: float = 1.0, *, clock: Clock = now
) -> ModeChange:
    """The step that goes into `modeHistory`."""
    return ModeChange(from_=before, to=after, timestamp=stamp(clock()), trigger=trigger, confidence=confidence)


def as_history(step: ModeChange) -> dict[str, object]:
    """As the session's metadata keeps it."""
    kept: dict[str, object] = msgspec.to_builtins(step)
    return kept
