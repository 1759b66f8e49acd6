"""Choice of a model's context window, with the reason."""

from __future__ import annotations

from msgspec.structs import replace

from ollm.config.settings import ProviderSettings
from ollm.providers.base import Provider

DEFAULT_WINDOW_TOKENS = 8192
FALLBACK_WINDOW_TOKENS = 4096
MIN_WINDOW_TOKENS = 2048  # Less holds hardly more than instructions, tools and one file.


def explain_window(window: int, said: int = 0) -> str:
    """Explain a window that is too small for much work, or smaller than set or announced. Returns "" if it is fine."""
    if window < said:
        return f"The server serves {window:,} tokens of context, not {said:,}: the window is {window:,} tokens."
    if window >= MIN_WINDOW_TOKENS:
        return ""
    return (
        f"A context window of {window} tokens is too small: use at least {MIN_WINDOW_TOKENS}, ideally 4096 or more."
        " Set provider.contextWindow, or serve the model with more."
    )


async def choose_window(
    provider: Provider, model: str, settings: ProviderSettings, probed: int | None = None, held: int | None = None
) -> tuple[int, str]:
    """Choose the window in tokens, with the reason. Called once per session. `held` is that of a resumed session."""
    if settings.context_window is not None:
        return settings.context_window, "set by provider.contextWindow"
    info = await provider.describe(model)
    if held and getattr(provider, "is_silent", False):
        why = "that of the resumed session, since the server does not report it now"
        info = replace(info, window=held, window_why=why)
    if info.window:
        return info.window, info.window_why or "reported by the server"
    if provider.name in ("ollama", "embedded") and info.trained_window:
        if info.trained_window <= DEFAULT_WINDOW_TOKENS:
            return info.trained_window, "all that the model supports"
        more = f"the model supports {info.trained_window}: set provider.contextWindow for more"
        return DEFAULT_WINDOW_TOKENS, f"requested{info.window_why}; {more}"
    if probed:
        return probed, "found by `ollm models probe`"
    known = "the server does not report it: set provider.contextWindow"
    return FALLBACK_WINDOW_TOKENS, f"a guess, {'until the model is loaded' if info.state == 'unloaded' else known}"
