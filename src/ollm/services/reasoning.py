"""Thinking is kept, shown folded and never sent back: the newest traces in full, older ones short (H)."""

from __future__ import annotations

import msgspec

from ollm.domain.context import ReasoningStorage, ReasoningTrace
from ollm.services.token_counting import TokenCounter

FULL_TRACES = 5
SHORT_CHARS = 200
MOST_TRACES = 100


def with_trace(storage: ReasoningStorage, message_id: int, text: str, counter: TokenCounter) -> ReasoningStorage:
    """The storage with one more trace; the archive keeps all of them whole."""
    if not text.strip():
        return storage
    trace = ReasoningTrace(message_id=message_id, text=text, tokens=counter.text(text))
    older, newest = storage.traces[: -(FULL_TRACES - 1)], storage.traces[-(FULL_TRACES - 1) :]
    kept = (*map(_shortened, older[-(MOST_TRACES - FULL_TRACES) :]), *newest, trace)
    return ReasoningStorage(traces=kept, total_tokens=storage.total_tokens + trace.tokens)


def _shortened(trace: ReasoningTrace) -> ReasoningTrace:
    if len(trace.text) <= SHORT_CHARS:
        return trace
    return msgspec.structs.replace(trace, text=trace.text[: SHORT_CHARS - 1].rstrip() + "…")
