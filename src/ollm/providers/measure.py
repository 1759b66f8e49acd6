"""How fast a model reads and writes, measured with one short request."""

from __future__ import annotations

from contextlib import aclosing

from ollm.domain.clock import monotonic
from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data
from ollm.providers.base import ChatRequest, FinishPiece, ProgressPiece, Provider

SENTENCE = "The quick brown fox jumps over the lazy dog while seven wizards brew strong coffee. "
MAX_ANSWER_TOKENS = 24


class MeasuredSpeed(Data, frozen=True):
    """Tokens a second; None where the server gave no counts."""

    prefill_per_second: float | None = None
    decode_per_second: float | None = None


async def measure_speed(provider: Provider, model: str, window: int) -> MeasuredSpeed:
    """Time a prompt nobody has sent before. A model that is not loaded yet is loaded by a request before it."""
    await _time_request(provider, _make_request(model, window, "hi", 1))
    begin, first, last, finish = await _time_request(
        provider, _make_request(model, window, f"{monotonic()} {SENTENCE * 8}", MAX_ANSWER_TOKENS)
    )
    usage = finish.usage
    fresh = usage.prompt_tokens - usage.reused_tokens
    return MeasuredSpeed(
        prefill_per_second=round(fresh / (first - begin), 1) if fresh > 0 and first > begin else None,
        decode_per_second=round((usage.completion_tokens - 1) / (last - first), 1)
        if usage.completion_tokens > 1 and last > first
        else None,
    )


def _make_request(model: str, window: int, text: str, most: int) -> ChatRequest:
    messages = (PromptMessage(role="user", content=text),)
    return ChatRequest(model=model, messages=messages, window=window, max_tokens=most, temperature=0)


async def _time_request(provider: Provider, request: ChatRequest) -> tuple[float, float, float, FinishPiece]:
    """When it began, when the first and the last piece of the answer came, and its end."""
    begin = first = last = monotonic()
    finish = FinishPiece()
    heard = False
    async with aclosing(provider.stream(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, FinishPiece):
                finish = piece
            elif not isinstance(piece, ProgressPiece):
                last = monotonic()
                first, heard = (first if heard else last), True
    return begin, first, last, finish
