"""The context at the end of a turn, saved so that a resume can send exactly that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import ActiveContext, ContextEntry, ModeName
from ollm.domain.model_facts import ModelFacts
from ollm.domain.struct import Data
from ollm.runtime.prompt.prefix import LedgerEntry
from ollm.runtime.prompt.token_meter import CountedPrompt

if TYPE_CHECKING:
    from ollm.runtime.prompt.prompt import Prompt

RESUMED_ENTRY_KEY = "resumed"  # the context entry that tells where a session was left


class SavedContext(Data, frozen=True):
    """The context at the end of a turn. `last_number` is the number of its newest message."""

    model: str
    window: int
    mode: ModeName
    last_number: int
    context: ActiveContext
    token_factor: float = 1.0
    forms: ModelFacts | None = None  # how the model called and took results
    ledger: LedgerEntry | None = None  # of the last request
    entries: tuple[ContextEntry, ...] = ()  # those of the user; the others are brought again
    goals_told: bool = True  # the model heard of the goals as they are
    armed: bool = True  # no snapshot was taken yet for how full it is
    counted: CountedPrompt | None = None  # what the server counted of the last request

    @property
    def counted_factor(self) -> float:
        """Tokens per unit of this context if the server counted it, else the learnt factor of the model."""
        known = self.counted
        return known.tokens / (known.prefix_units + known.message_units) if known else self.token_factor

    @staticmethod
    def from_prompt(prompt: Prompt, last_number: int) -> SavedContext:
        whom, context = prompt.model, prompt.get_active_context()
        known = (number for entry in context.messages for number in entry.sources)  # notes between the turns too
        return SavedContext(
            model=whom.model,
            window=whom.window,
            mode=prompt.mode,
            last_number=max((last_number, *known)),
            context=context,
            token_factor=prompt.token_calibration[0],
            forms=prompt.forms,
            ledger=prompt.ledger.last,
            entries=tuple(prompt.entries.get_context_by_source("user")),
            goals_told=prompt.goals_told,
            armed=prompt.snapshot_armed,
            counted=prompt.meter.counted_prompt,
        )


def read_saved_context(kept: bytes | None) -> SavedContext | None:
    """Read a saved context. Return None if there is none, or if it comes from another version."""
    try:
        return msgspec.json.decode(kept or b"", type=SavedContext)
    except msgspec.MsgspecError:
        return None


class _LastNumber(Data, frozen=True):
    last_number: int


def read_last_number(kept: bytes | None) -> int:
    """Return the number of the newest message in a saved context, or 0 without one."""
    try:
        return msgspec.json.decode(kept or b"", type=_LastNumber).last_number
    except msgspec.MsgspecError:
        return 0
