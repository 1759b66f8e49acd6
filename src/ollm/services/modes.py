"""Modes (H: modeHistory): what the model is told to be and the tools it is shown."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.context import Approval, ModeName
from ollm.domain.session import ModeChange, ModeTrigger
from ollm.domain.struct import Data

READING_TOOLS = frozenset(
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
BUILTIN_TOOLS = READING_TOOLS | {"write_file", "edit_file", "shell"}


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
        tools=READING_TOOLS,
    ),
    "plan": Mode(
        name="plan",
        told="You plan and change nothing. Read what you need, then give numbered steps and the files they touch.",
        tools=READING_TOOLS,
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


def list_mode_tools(mode: ModeName, names: Iterable[str]) -> tuple[str, ...]:
    """Of these tools the ones the mode shows, in their order."""
    shown = MODES[mode].tools
    if shown is None:
        return tuple(names)
    may_change = MODES[mode].approval is None
    return tuple(name for name in names if name in shown or (may_change and name not in BUILTIN_TOOLS))


def make_mode_change(
    before: ModeName, after: ModeName, trigger: ModeTrigger, confidence: float = 1.0, *, clock: Clock = now
) -> ModeChange:
    """The step that goes into `modeHistory`."""
    return ModeChange(from_=before, to=after, timestamp=format_stamp(clock()), trigger=trigger, confidence=confidence)


def to_history_entry(step: ModeChange) -> dict[str, object]:
    """As the session's metadata keeps it."""
    kept: dict[str, object] = msgspec.to_builtins(step)
    return kept
