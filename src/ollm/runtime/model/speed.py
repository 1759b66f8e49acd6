"""How fast a model read and wrote, taken from an ordinary answer: a first conversation needs no request for it."""

from __future__ import annotations

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.model_facts import ModelFacts
from ollm.providers.base import AnyPiece, FinishPiece, ProgressPiece, TextPiece, ThinkingPiece

MIN_READ_TOKENS = 100  # tokens that must have been read, and written, for a figure
MIN_WRITTEN_TOKENS = 16
MIN_MEASURED_SECONDS = 0.2


class SpeedMeter:
    """Begins when it is made; hears the pieces of one answer as the server sends them."""

    def __init__(self) -> None:
        self._begin = monotonic()
        self._first = self._last = 0.0
        self._loaded = True
        self._finish = FinishPiece()

    def observe_piece(self, piece: AnyPiece) -> None:
        match piece:
            case TextPiece() | ThinkingPiece():
                self._last = monotonic()
                self._first = self._first or self._last
            case ProgressPiece(stage="loading"):
                self._loaded = False
            case FinishPiece():
                self._finish = piece

    def update_facts(self, facts: ModelFacts) -> ModelFacts:
        """The facts with the speeds that were not known yet, where this answer was long enough to tell. What a server
        took from its cache was not read: where it does not say how much that was, no speed of reading is learnt."""
        usage = self._finish.usage
        fresh, written = usage.prompt_tokens - usage.reused_tokens, usage.completion_tokens
        reading, writing = self._first - self._begin, self._last - self._first
        if (
            facts.prefill_per_second is None
            and self._loaded
            and self._finish.counts_reuse
            and fresh >= MIN_READ_TOKENS
            and reading > MIN_MEASURED_SECONDS
        ):
            facts = replace(facts, prefill_per_second=round(fresh / reading, 1))
        if facts.decode_per_second is None and written >= MIN_WRITTEN_TOKENS and writing > MIN_MEASURED_SECONDS:
            facts = replace(facts, decode_per_second=round((written - 1) / writing, 1))
        return facts
