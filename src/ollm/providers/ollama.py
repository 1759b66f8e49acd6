"""Ollama: `/api/chat` as NDJSON, with one window (`num_ctx`) on every request.

The window is always sent: a request without it, or with another one, makes the server load the model anew or cut the
prompt without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, UnknownModelError
from ollm.domain.messages import JsonObject, PromptMessage
from ollm.providers.alternation import in_turn
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    CompletionRequest,
    FinishPiece,
    FinishReason,
    ModelInfo,
    TextPiece,
    ThinkingPiece,
)
from ollm.providers.exchange import Exchange
from ollm.providers.server_errors import as_int, from_words, server_words, unknown_model
from ollm.providers.wire import arguments, entries, functions, mapping, text
from ollm.system.http import lines

REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class Ollama:
    """A running Ollama."""

    name = "ollama"

    def __init__(self, exchange: Exchange) -> None:
        self.base_url = exchange.url
        self._exchange = exchange

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        last: dict[str, Any] | None = None
        called = False
        try:
            async with (
                self._exchange.stream("/api/chat", chat_body(request)) as response,
                aclosing(lines(response.chunks())) as answer,
            ):
                async for line in answer:
                    if not line.strip():
                        continue
                    last = self._checked(line)
                    pieces = pieces_of(last)
                    response.patience.sign(begun=not request.tools)  # a call is held back until it is whole
                    for piece in pieces:
                        called = called or isinstance(piece, CallPiece)
                        yield piece
                    if last.get("done"):
                        break
        except UnknownModelError as error:
            raise await self._unknown(request.model) from error
        if last is None or not last.get("done"):
            raise ModelError(
                f"The model server at {self.base_url} ended the answer in the middle.",
                action="Its own log says why; try again.",
            )
        yield finish_of(last, called=called)

    async def models(self) -> list[ModelInfo]:
        found = mapping(await self._exchange.json("GET", "/api/tags"))
        return [
            ModelInfo(name=text(entry.get("name")) or text(entry.get("model")), size=as_int(entry.get("size")) or None)
            for entry in entries(found.get("models"))
        ]

    async def describe(self, model: str) -> ModelInfo:
        shown, running = await asyncio.gather(self._shown(model), self._exchange.maybe("GET", "/api/ps"))
        return info_of(model, mapping(shown), mapping(running))

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None

    async def count_prompt(self, request: ChatRequest) -> int | None:
        return None

    async def render(self, request: ChatRequest) -> str | None:
        return None

    def complete(self, request: CompletionRequest) -> AsyncGenerator[AnyPiece, None]:
        raise ModelError("Ollama does not go on with a rendered prompt.", action="Send a response schema instead.")

    def allow(self, seconds: float) -> None:
        self._exchange.allow(seconds)

    async def close(self) -> None:
        await self._exchange.close()

    async def _shown(self, model: str) -> Any:
        """What the server tells about the model; nothing where it has no such page."""
        try:
            return await self._exchange.json("POST", "/api/show", {"model": model})
        except UnknownModelError as error:
            raise await self._unknown(model) from error
        except ModelError:
            return None

    def _checked(self, line: bytes) -> dict[str, Any]:
        """An error in mid-stream comes as a line of its own, under a status that said all was well."""
        value = mapping(self._exchange.decode(line))
        if value.get("error"):
            raise from_words(self.base_url, server_words(value), 200, value)
        return value

    async def _unknown(self, model: str) -> UnknownModelError:
        return unknown_model(self.base_url, model, [info.name for info in await self.models()])


def chat_body(request: ChatRequest) -> JsonObject:
    options: JsonObject = {"num_ctx": request.window}
    if request.max_tokens is not None:
        options["num_predict"] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.stop:
        options["stop"] = list(request.stop)
    body: JsonObject = {
        "model": request.model,
        "messages": [message_body(m) for m in in_turn(request.messages)],
        "stream": True,
    }
    if request.tools:
        body["tools"] = functions(request.tools)
    if request.response_schema is not None:
        body["format"] = request.response_schema
    return body | {"options": options}


def message_body(message: PromptMessage) -> JsonObject:
    body: JsonObject = {"role": message.role, "content": message.content}
    if message.images:
        body["images"] = [image.data for image in message.images]
    if message.calls:
        body["tool_calls"] = [{"function": {"name": c.name, "arguments": c.arguments}} for c in message.calls]
    if message.role == "tool" and message.tool_name:
        body["tool_name"] = message.tool_name
    return body


def pieces_of(value: dict[str, Any]) -> list[AnyPiece]:
    message = mapping(value.get("message"))
    pieces: list[AnyPiece] = []
    if thinking := text(message.get("thinking")):
        pieces.append(ThinkingPiece(thinking))
    if content := text(message.get("content")):
        pieces.append(TextPiece(content))
    for entry in entries(message.get("tool_calls")):
        function = mapping(entry.get("function"))
        pieces.append(CallPiece(text(function.get("name")), arguments(function.get("arguments"))))
    return pieces


def finish_of(value: dict[str, Any], *, called: bool) -> FinishPiece:
    reason = "tool_calls" if called else REASONS.get(text(value.get("done_reason")), "unknown")
    usage = Usage(
        prompt_tokens=as_int(value.get("prompt_eval_count")), completion_tokens=as_int(value.get("eval_count"))
    )
    return FinishPiece(reason, usage)


def info_of(model: str, shown: dict[str, Any], running: dict[str, Any]) -> ModelInfo:
    facts = mapping(shown.get("model_info"))
    trained = as_int(facts.get(f"{text(facts.get('general.architecture'))}.context_length"))
    listed = shown.get("capabilities")
    abilities = listed if isinstance(listed, list) else None
    loaded = [entry for entry in entries(running.get("models")) if same_model(text(entry.get("name")), model)]
    return ModelInfo(
        name=model,
        window=(as_int(loaded[0].get("context_length")) or None) if loaded else None,
        trained_window=trained or None,
        vision="vision" in (abilities or ()),
        thinking="thinking" in (abilities or ()),
        tools=None if abilities is None else "tools" in abilities,
    )


def same_model(one: str, other: str) -> bool:
    """`name` and `name:latest` are the same model."""
    return one.removesuffix(":latest") == other.removesuffix(":latest")
