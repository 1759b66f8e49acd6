"""The context window of a model, with its reason."""

from typing import Any

import pytest

from ollm.config.settings import ProviderSettings
from ollm.providers.base import ModelInfo
from ollm.providers.window import choose_window, explain_small_window, explain_window


class Server:
    """Tells of its model what it is given."""

    def __init__(self, name: str, **facts: Any) -> None:
        self.name = name
        self._info = ModelInfo(name="m", **facts)

    async def describe(self, model: str) -> ModelInfo:
        return self._info


@pytest.mark.parametrize(
    ("server", "set_to", "probed", "window", "reason"),
    [
        (Server("openai", window=100), 5000, None, 5000, "set by provider.contextWindow"),
        (Server("openai", window=32_768, trained_window=9), None, 7, 32_768, "as served"),
        (Server("ollama", trained_window=4096), None, None, 4096, "as trained"),
        (Server("embedded", trained_window=8192), None, None, 8192, "as trained"),
        (
            Server("ollama", trained_window=8193),
            None,
            None,
            8192,
            "requested; the model supports 8193: set provider.contextWindow for more",
        ),
        (Server("openai", trained_window=8192), None, 3000, 3000, "found by `ollm models probe`"),
        (
            Server("openai", trained_window=8192),
            None,
            None,
            4096,
            "a guess, the server does not report it: set provider.contextWindow",
        ),
        (Server("ollama"), None, None, 4096, "a guess, the server does not report it: set provider.contextWindow"),
    ],
)
async def test_the_window_and_the_reason(
    server: Any, set_to: int | None, probed: int | None, window: int, reason: str
) -> None:
    assert await choose_window(server, "m", ProviderSettings(context_window=set_to), probed) == (window, reason)


def test_a_window_that_is_less_than_was_said_is_told() -> None:
    assert explain_window(8192, 8192) == ""
    assert explain_window(1024, 1024) == explain_small_window(1024)
    assert explain_window(4096, 32_768) == (
        "The server serves 4,096 tokens of context, not 32,768: the window is 4,096 tokens."
    )
