"""Modes (H: modeHistory): the model's role and the tools it is shown."""

from __future__ import annotations

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.context import Approval, ModeName
from ollm.domain.session import ModeChange, ModeTrigger
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCategory

READING_CATEGORIES: frozenset[ToolCategory] = frozenset({"read", "notes", "web"})


class Mode(Data, frozen=True):
    """A mode. `tools` are the categories it shows, by default all."""

    name: ModeName
    role: str
    tools: frozenset[ToolCategory] | None = None
    approval: Approval | None = None


MODES: dict[ModeName, Mode] = {
    "assistant": Mode(
        name="assistant",
        role="You answer questions and explain. Look things up with your tools before you state facts about this code.",
        tools=READING_CATEGORIES,
    ),
    "plan": Mode(
        name="plan",
        role="You plan and change nothing. Read what you need, then give numbered steps and the files they touch.",
        tools=READING_CATEGORIES,
        approval="read-only",
    ),
    "code": Mode(
        name="code",
        role="You write and change code. Read before you edit, keep edits small, and run what proves that they work.",
    ),
    "debug": Mode(
        name="debug",
        role="You find causes. Reproduce the fault first, look at evidence, change one thing at a time, prove the fix.",
    ),
}


def shows_tool(mode: ModeName, category: ToolCategory | None) -> bool:
    """Return True if the mode shows tools of this category. Extension tools have none, and are shown in every mode that
    may make changes."""
    if category is None:
        return MODES[mode].approval is None
    shown = MODES[mode].tools
    return shown is None or category in shown


def make_mode_change(
    before: ModeName, after: ModeName, trigger: ModeTrigger, confidence: float = 1.0, *, clock: Clock = now
) -> dict[str, object]:
    """Make the entry for `modeHistory` in the session's metadata."""
    step = ModeChange(from_=before, to=after, timestamp=format_stamp(clock()), trigger=trigger, confidence=confidence)
    kept: dict[str, object] = msgspec.to_builtins(step)
    return kept
