"""How large a window a model is used with, and why."""

from __future__ import annotations

from ollm.config.settings import ProviderSettings
from ollm.providers.base import Provider

ASKED_FOR = 8192
UNKNOWN = 4096
WORKABLE = 2048  # less holds hardly more than instructions, tools and one file


def too_small(window: int) -> str:
    """What the user is told of a window in which little can be done; nothing where it will do."""
    if window >= WORKABLE:
        return ""
    return (
        f"A window of {window} tokens is too small to work in: {WORKABLE} is the least that does, 4096 is better."
        " Set provider.contextWindow, or serve the model with more."
    )


async def window(
    provider: Provider, model: str, settings: ProviderSettings, probed: int | None = None
) -> tuple[int, str]:
    """The window in tokens and the reason in words; the caller chooses once per session and keeps to it."""
    if settings.context_window is not None:
        return settings.context_window, "set by provider.contextWindow"
    info = await provider.describe(model)
    if info.window:
        return info.window, "what the server serves this model with"
    if provider.name in ("ollama", "embedded") and info.trained_window:
        if info.trained_window <= ASKED_FOR:
            return info.trained_window, "all the model was trained for"
        return ASKED_FOR, f"asked for; the model could take {info.trained_window}: set provider.contextWindow for more"
    if probed:
        return probed, "what `ollm models probe` found"
    return UNKNOWN, "a guess, as the server does not say: set provider.contextWindow to what it serves"
