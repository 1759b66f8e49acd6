"""Thinking is kept, shown folded and never sent back: the newest traces in full, older ones short (H)."""

from __future__ import annotations

import msgspec

from ollm.domain.context import ReasoningStorage, ReasoningTrace
from ollm.services.token_counting import TokenCounter

MAX_FULL_TRACES = 5
MAX_SHORT_CHARS = 200
MAX_TRACES = 100


def add_trace(storage: ReasoningStorage, message_id: int, text: str, counter: TokenCounter) -> ReasoningStorage:
    """The storage with one more trace; the archive keeps all of them whole."""
    if not text.strip():
        return storage
    trace = ReasoningTrace(message_id=message_id, text=text, tokens=counter.count_text(text))
    older, newest = storage.traces[: -(MAX_FULL_TRACES - 1)], storage.traces[-(MAX_FULL_TRACES - 1) :]
    kept = (*map(_shorten_trace, older[-(MAX_TRACES - MAX_FULL_TRACES) :]), *newest, trace)
    return ReasoningStorage(traces=kept, total_tokens=storage.total_tokens + trace.tokens)


def _shorten_trace(trace: ReasoningTrace) -> ReasoningTrace:
    if len(trace.text) <= MAX_SHORT_CHARS:
        return trace
    return msgspec.structs.replace(trace, text=trace.text[: MAX_SHORT_CHARS - 1].rstrip() + "…")
