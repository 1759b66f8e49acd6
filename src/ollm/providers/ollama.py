"""Ollama: `/api/chat` as NDJSON, with one window (`num_ctx`) on every request.

The window is always sent: a request without it, or with another one, makes the server reload the model or silently
truncate the prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from ollm.domain.clock import monotonic
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, UnknownModelError
from ollm.domain.messages import JsonObject, PromptMessage
from ollm.providers import request_settings
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    FinishReason,
    ModelInfo,
    TextPiece,
    ThinkingPiece,
    as_entries,
    as_mapping,
    as_text,
    as_thinking,
    build_functions,
    is_called,
    merge_user_messages,
    parse_arguments,
    read_sampling,
    write_thinking,
)
from ollm.providers.exchange import NOT_LOADED, Exchange, ServerProvider
from ollm.providers.server_errors import as_int, make_unknown_model_error
from ollm.providers.server_kind import HOST_PAGES
from ollm.providers.window import DEFAULT_WINDOW_TOKENS
from ollm.system.http import iter_lines

RELOAD_TEXT = ", so that Ollama reloads the model, loaded with {}"
REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class Ollama(ServerProvider):
    name = "ollama"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange, exchange.url)
        self.pages = HOST_PAGES["ollama"]

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        return self.stream_when_ready(request.model, lambda: self._stream_chat(request))

    async def _stream_chat(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        last: dict[str, Any] | None = None
        called = False
        try:
            async with (
                self._exchange.stream("/api/chat", build_chat_body(request)) as response,
                aclosing(iter_lines(response.iter_chunks())) as answer,
            ):
                async for line in answer:
                    if not line.strip():
                        continue
                    last = self._decode_chunk(line)
                    pieces = read_pieces(last)
                    response.timer.reset(begun=not request.tools)  # Ollama holds a call back until it is whole.
                    for piece in pieces:
                        called = called or isinstance(piece, CallPiece)
                        yield piece
                    if last.get("done"):
                        break
        except UnknownModelError as error:
            raise await self._make_unknown_model_error(request.model) from error
        if last is None or not last.get("done"):
            raise self._make_broken_error()
        yield read_finish(last, called=called)

    async def models(self) -> list[ModelInfo]:
        found = as_mapping(await self._exchange.request_json("GET", "/api/tags"))
        infos = [
            ModelInfo(
                name=as_text(entry.get("name")) or as_text(entry.get("model")), size=as_int(entry.get("size")) or None
            )
            for entry in as_entries(found.get("models"))
        ]
        return await self.add_states(infos)

    async def describe(self, model: str) -> ModelInfo:
        shown, running = await asyncio.gather(
            self._show_model(model), self._exchange.try_request_json("GET", "/api/ps")
        )
        info = read_model_info(model, as_mapping(shown), as_mapping(running))
        self._heard = 0.0 if info.state in NOT_LOADED else monotonic()
        return info

    async def _show_model(self, model: str) -> Any:
        try:
            return await self._exchange.request_json("POST", "/api/show", {"model": model})
        except UnknownModelError as error:
            raise await self._make_unknown_model_error(model) from error
        except ModelError:
            return None

    async def _make_unknown_model_error(self, model: str) -> UnknownModelError:
        return make_unknown_model_error(self.base_url, model, [info.name for info in await self.models()])


def build_chat_body(request: ChatRequest) -> JsonObject:
    options = {"num_ctx": request.window, "num_predict": request.max_tokens, "temperature": request.temperature}
    messages = list(request.messages) if request.verbatim else merge_user_messages(request.messages)
    if request.settings:
        messages = request_settings.add_thinking_word(messages, request.settings)
    body: JsonObject = {
        "model": request.model,
        "messages": build_messages(messages),
        "stream": True,
        "tools": build_functions(request.tools) or None,
        "format": request.response_schema,
        "options": {name: value for name, value in options.items() if value is not None},
    }
    body = {name: value for name, value in body.items() if value is not None}
    return request_settings.add_ollama_fields(body, request.settings) if request.settings else body


def build_messages(messages: Sequence[PromptMessage]) -> list[JsonObject]:
    given = {call.id: call.wire_id for message in messages for call in message.calls if call.wire_id}
    return [build_message(message, given) for message in messages]


def build_message(message: PromptMessage, given: Mapping[str, str]) -> JsonObject:
    """Build a message. Older servers give calls no ids, and get none."""
    body: JsonObject = {"role": message.role, "content": message.content}
    write_thinking(message, body)
    more = {
        "images": [image.data for image in message.images],
        "tool_calls": [
            {"function": {"name": call.name, "arguments": call.arguments}}
            | ({"id": call.wire_id} if call.wire_id else {})
            for call in message.calls
        ],
        "tool_name": message.role == "tool" and message.tool_name,
        "tool_call_id": given.get(message.call_id or ""),
    }
    return body | {name: value for name, value in more.items() if value}


def read_pieces(value: dict[str, Any]) -> list[AnyPiece]:
    message = as_mapping(value.get("message"))
    pieces: list[AnyPiece] = []
    if thinking := as_thinking(message.get("thinking")):
        pieces.append(ThinkingPiece(thinking, "thinking"))
    if content := as_text(message.get("content")):
        pieces.append(TextPiece(content))
    for entry in as_entries(message.get("tool_calls")):
        function = as_mapping(entry.get("function"))
        arguments = parse_arguments(function.get("arguments"))
        pieces.append(CallPiece(as_text(function.get("name")), arguments, as_text(entry.get("id"))))
    return pieces


def read_finish(value: dict[str, Any], *, called: bool) -> FinishPiece:
    reason = "tool_calls" if called else REASONS.get(as_text(value.get("done_reason")), "unknown")
    usage = Usage(
        prompt_tokens=as_int(value.get("prompt_eval_count")), completion_tokens=as_int(value.get("eval_count"))
    )
    return FinishPiece(reason, usage, counts_reuse=False, read_seconds=as_int(value.get("prompt_eval_duration")) / 1e9)


def read_model_info(model: str, shown: dict[str, Any], running: dict[str, Any]) -> ModelInfo:
    facts = as_mapping(shown.get("model_info"))
    trained = as_int(facts.get(f"{as_text(facts.get('general.architecture'))}.context_length"))
    listed = shown.get("capabilities")
    abilities = listed if isinstance(listed, list) else None
    parameters = dict(map(_read_parameter, as_text(shown.get("parameters")).splitlines()))
    loaded = [entry for entry in as_entries(running.get("models")) if is_called(as_text(entry.get("name")), model)]
    held, written = as_int(loaded[0].get("context_length")) if loaded else 0, as_int(parameters.get("num_ctx"))
    stays = held >= min(DEFAULT_WINDOW_TOKENS, trained or held)
    return ModelInfo(
        name=model,
        state="loaded" if loaded else "unloaded",
        window=min(written, trained or written) or (held if stays else None) or None,
        window_why="num_ctx of its Modelfile" if written else "" if stays or not held else RELOAD_TEXT.format(held),
        trained_window=trained or None,
        vision="vision" in (abilities or ()),
        thinking="thinking" in (abilities or ()),
        tools=None if abilities is None else "tools" in abilities,
        parameters=as_int(facts.get("general.parameter_count")) or None,
        template=as_text(shown.get("template")),
        architecture=as_text(facts.get("general.architecture")),
        title=as_text(facts.get("general.basename")) or as_text(facts.get("general.name")),
        file=next((line[5:] for line in as_text(shown.get("modelfile")).splitlines() if line.startswith("FROM /")), ""),
        metadata=facts,
        sampling=read_sampling(parameters),
    )


def _read_parameter(line: str) -> tuple[str, float | None]:
    """Read a line of a Modelfile's parameters, such as `temperature 0.6`."""
    name, _, value = line.strip().partition(" ")
    try:
        return name, float(value)
    except ValueError:
        return name, None
