from __future__ import annotations

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.messages import PromptMessage
from ollm.providers.base import AnyPiece, ChatRequest, Provider, TextPiece
from ollm.providers.exchange import Exchange
from ollm.providers.ollama import Ollama
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.server_kind import split_base_url

SHORT = ProviderTimeouts(connect=1, first_token=5, stall=5)


def openai(url: str, timeouts: ProviderTimeouts = SHORT, key: str = "") -> OpenAICompatible:
    root, api = split_base_url(url)
    return OpenAICompatible(Exchange(root, timeouts, api_key=key), api)


def ollama(url: str, timeouts: ProviderTimeouts = SHORT) -> Ollama:
    return Ollama(Exchange(url, timeouts))


def ask(text: str = "hi", **more: object) -> ChatRequest:
    fields: dict[str, object] = {
        "model": "scripted",
        "window": 8192,
        "messages": (PromptMessage(role="user", content=text),),
    }
    return ChatRequest(**(fields | more))  # type: ignore[arg-type]


async def said(provider: Provider, request: ChatRequest | None = None) -> list[AnyPiece]:
    return [piece async for piece in provider.stream(request or ask())]


def text_of(pieces: list[AnyPiece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


@pytest.fixture
def free_port() -> int:
    """A port nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
