"""A request in the words of the OpenAI chat API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ollm.domain.messages import JsonObject, PromptMessage
from ollm.domain.sequences import count_same_objects
from ollm.providers.alternation import merge_user_messages
from ollm.providers.base import ChatRequest
from ollm.providers.wire import build_functions


class MessageEncoder:
    """The messages of the last request as JSON: those that are in the next one too are not encoded again."""

    def __init__(self) -> None:
        self._messages: list[PromptMessage] = []
        self._encoded: list[msgspec.Raw] = []

    def __call__(self, messages: Sequence[PromptMessage]) -> list[msgspec.Raw]:
        same = count_same_objects(self._messages, messages)
        known = dict(zip(map(id, self._messages[same:]), self._encoded[same:], strict=True))
        fresh = [known.get(id(message)) or _encode_message(message) for message in messages[same:]]
        self._messages, self._encoded = list(messages), self._encoded[:same] + fresh
        return self._encoded


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
