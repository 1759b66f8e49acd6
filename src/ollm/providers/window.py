"""Choice of a model's context window, with the reason."""

from __future__ import annotations

from contextlib import aclosing

from ollm.config.settings import ProviderSettings
from ollm.domain.clock import monotonic
from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data
from ollm.providers.base import ChatRequest, FinishPiece, ProgressPiece, Provider

DEFAULT_WINDOW_TOKENS = 8192
FALLBACK_WINDOW_TOKENS = 4096
MIN_WINDOW_TOKENS = 2048  # less holds hardly more than instructions, tools and one file


def explain_window(window: int, said: int) -> str:
    """Explain a window that is too small, or smaller than set or announced. Returns "" if it is fine."""
    if window < said:
        return f"The server serves {window:,} tokens of context, not {said:,}: the window is {window:,} tokens."
    return explain_small_window(window)


def explain_small_window(window: int) -> str:
    """Explain a window that is too small for much work. Returns "" if it is fine."""
    if window >= MIN_WINDOW_TOKENS:
        return ""
    return (
        f"A context window of {window} tokens is too small: use at least {MIN_WINDOW_TOKENS}, ideally 4096 or more."
        " Set provider.contextWindow, or serve the model with more."
    )


async def choose_window(
    provider: Provider, model: str, settings: ProviderSettings, probed: int | None = None
) -> tuple[int, str]:
    """Choose the window in tokens, with the reason. Called once per session."""
    if settings.context_window is not None:
        return settings.context_window, "set by provider.contextWindow"
    info = await provider.describe(model)
    if info.window:
        return info.window, "reported by the server"
    if provider.name in ("ollama", "embedded") and info.trained_window:
        if info.trained_window <= DEFAULT_WINDOW_TOKENS:
            return info.trained_window, "all that the model supports"
        return (
            DEFAULT_WINDOW_TOKENS,
            f"requested; the model supports {info.trained_window}: set provider.contextWindow for more",
        )
    if probed:
        return probed, "found by `ollm models probe`"
    return FALLBACK_WINDOW_TOKENS, "a guess, the server does not report it: set provider.contextWindow"


SENTENCE = "The quick brown fox jumps over the lazy dog while seven wizards brew strong coffee. "
MAX_ANSWER_TOKENS = 24


class MeasuredSpeed(Data, frozen=True):
    """Speed in tokens per second; None if the server reported no counts."""

    prefill_per_second: float | None = None
    decode_per_second: float | None = None


async def measure_speed(provider: Provider, model: str, window: int) -> MeasuredSpeed:
    """Time a new prompt after a first request has loaded the model."""
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
    """Return the times of the start, the first and the last piece, and the finish."""
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
