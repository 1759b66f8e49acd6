"""A request in the words of the OpenAI chat API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ollm.domain.messages import JsonObject, PromptMessage
from ollm.providers.alternation import merge_user_messages
from ollm.providers.base import ChatRequest
from ollm.providers.wire import build_functions


class MessageEncoder:
    """The messages of the last request as JSON: those that are in the next one too are not encoded again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[PromptMessage, msgspec.Raw]] = {}

    def __call__(self, messages: Iterable[PromptMessage]) -> list[msgspec.Raw]:
        found = [(message, self._encode_cached(message)) for message in messages]
        self._known = {id(message): (message, raw) for message, raw in found}
        return [raw for _, raw in found]

    def _encode_cached(self, message: PromptMessage) -> msgspec.Raw:
        held = self._known.get(id(message))
        return held[1] if held and held[0] is message else _encode_message(message)


def _encode_message(message: PromptMessage) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(build_message(message)))


def build_messages(messages: Iterable[PromptMessage]) -> list[JsonObject]:
    return [build_message(message) for message in messages]


def build_chat_body(
    request: ChatRequest, written: Callable[[list[PromptMessage]], Sequence[object]] = build_messages
) -> JsonObject:
    body: JsonObject = {
        "model": request.model,
        "messages": written(merge_user_messages(request.messages)),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = build_functions(request.tools)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop"] = list(request.stop)
    if request.response_schema is not None:
        schema = {"name": "answer", "strict": True, "schema": request.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def build_message(message: PromptMessage) -> JsonObject:
    body: JsonObject = {"role": message.role, "content": _build_content(message)}
    if message.calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call in message.calls
        ]
    if message.role == "tool" and message.call_id:
        body["tool_call_id"] = message.call_id
    return body


def _build_content(message: PromptMessage) -> str | list[JsonObject]:
    if not message.images:
        return message.content
    images: list[JsonObject] = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
        for image in message.images
    ]
    return [{"type": "text", "text": message.content}, *images] if message.content else images
