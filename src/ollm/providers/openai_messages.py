"""Requests and streamed answers of the OpenAI chat API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ollm.domain.context import Usage
from ollm.domain.errors import ModelError
from ollm.domain.messages import JsonObject, PromptMessage, count_same_objects
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    FinishReason,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
)
from ollm.providers.server_errors import as_int
from ollm.providers.wire import as_entries, as_mapping, as_text, build_functions, merge_user_messages, parse_arguments


class MessageEncoder:
    """Encodes messages as JSON and reuses those of the last request."""

    def __init__(self) -> None:
        self._messages: list[PromptMessage] = []
        self._encoded: list[msgspec.Raw] = []

    def __call__(self, messages: Sequence[PromptMessage]) -> list[msgspec.Raw]:
        same = count_same_objects(self._messages, messages)
        known = dict(zip(map(id, self._messages[same:]), self._encoded[same:], strict=True))
        fresh = [
            known.get(id(message)) or msgspec.Raw(msgspec.json.encode(build_message(message)))
            for message in messages[same:]
        ]
        self._messages, self._encoded = list(messages), self._encoded[:same] + fresh
        return self._encoded


def build_chat_body(
    request: ChatRequest, encode: Callable[[list[PromptMessage]], Sequence[object]] | None = None
) -> JsonObject:
    messages = merge_user_messages(request.messages)
    body: JsonObject = {
        "model": request.model,
        "messages": encode(messages) if encode else list(map(build_message, messages)),
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


REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
DONE_MARK = "[DONE]"


MAX_CALL_CHARACTERS = 8 << 20  # what one answer may bring of calls
MAX_CALLS = 1_000


class CallFragments:
    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.name = ""
        self._written: list[str] = []
        self.whole: dict[str, Any] | None = None

    def add(self, function: dict[str, Any]) -> None:
        self.name += as_text(function.get("name"))
        given = function.get("arguments")
        if isinstance(given, dict):
            self.whole = given
        self._written.append(as_text(given))

    @property
    def written(self) -> str:
        if len(self._written) > 1:
            self._written = ["".join(self._written)]
        return "".join(self._written)

    @property
    def ended(self) -> bool:
        return self.whole is not None or (
            bool(self.written.strip()) and isinstance(parse_arguments(self.written), dict)
        )

    def build_piece(self) -> CallPiece:
        return CallPiece(self.name, self.whole if self.whole is not None else parse_arguments(self.written))


class StreamAssembler:
    """Converts decoded chunks to pieces; `finish` returns the calls and the end."""

    def __init__(self) -> None:
        self._calls: list[CallFragments] = []
        self._by_index: dict[int, CallFragments] = {}
        self._reason: FinishReason | None = None
        self._usage = Usage()
        self._call_characters = 0
        self.grew = False  # the last chunk brought something
        self._counts_reuse = False
        self.writing = False  # the model has begun: text, thinking or a fragment of a call came

    @property
    def ended(self) -> bool:
        """True if the server said why it stopped."""
        return self._reason is not None

    @property
    def calls_complete(self) -> bool:
        """True if calls were made and all of them are complete."""
        return bool(self._calls) and all(call.ended for call in self._calls)

    def add_chunk(self, chunk: dict[str, Any]) -> list[AnyPiece]:
        before = self._call_characters, self._reason
        self._update_usage(chunk)
        pieces: list[AnyPiece] = []
        if progress := as_mapping(chunk.get("prompt_progress")):
            pieces.append(ProgressPiece(as_int(progress.get("processed")), as_int(progress.get("total"))))
        for choice in as_entries(chunk.get("choices"))[:1]:
            pieces += self._read_choice(choice)
        self.grew = bool(pieces) or before != (self._call_characters, self._reason)
        return pieces

    def finish(self) -> list[AnyPiece]:
        reason = "tool_calls" if self._calls else self._reason or "unknown"
        return [*(call.build_piece() for call in self._calls), FinishPiece(reason, self._usage, self._counts_reuse)]

    def _read_choice(self, choice: dict[str, Any]) -> list[AnyPiece]:
        delta = as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))
        if ended := as_text(choice.get("finish_reason")):
            self._reason = REASONS.get(ended, "unknown")
        for entry in as_entries(delta.get("tool_calls")):
            self._add_fragment(entry)
            self.writing = True
        pieces: list[AnyPiece] = []
        if thinking := as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")):
            pieces.append(ThinkingPiece(thinking))
        if content := as_text(delta.get("content")):
            pieces.append(TextPiece(content))
        self.writing = self.writing or bool(pieces)
        return pieces

    def _add_fragment(self, entry: dict[str, Any]) -> None:
        """Add a fragment; servers tell calls apart by index, by id alone, or by order."""
        identity, function = as_text(entry.get("id")), as_mapping(entry.get("function"))
        index = as_int(entry.get("index")) if "index" in entry else max(0, len(self._calls) - (0 if identity else 1))
        call = self._by_index.get(index)
        if call is None or (identity and call.identity and identity != call.identity and function.get("name")):
            call = self._by_index[index] = CallFragments(identity)
            self._calls.append(call)
        call.add(function)
        self._call_characters += len(as_text(function.get("arguments"))) + len(as_text(function.get("name")))
        if self._call_characters > MAX_CALL_CHARACTERS or len(self._calls) > MAX_CALLS:
            raise ModelError(
                "The model server sent a tool call that does not end.", action="Try again, or use another model."
            )

    def _update_usage(self, chunk: dict[str, Any]) -> None:
        usage, timings = as_mapping(chunk.get("usage")), as_mapping(chunk.get("timings"))
        details = as_mapping(usage.get("prompt_tokens_details"))
        if not usage and not timings:
            return
        self._counts_reuse = (
            self._counts_reuse or "cached_tokens" in details or "cache_n" in timings or "prompt_n" in timings
        )
        reused = as_int(details.get("cached_tokens")) or as_int(timings.get("cache_n"))
        read = as_int(timings.get("prompt_n")) + as_int(timings.get("cache_n"))
        self._usage = Usage(
            prompt_tokens=as_int(usage.get("prompt_tokens")) or read or self._usage.prompt_tokens,
            completion_tokens=as_int(usage.get("completion_tokens"))
            or as_int(timings.get("predicted_n"))
            or self._usage.completion_tokens,
            reused_tokens=reused or self._usage.reused_tokens,
        )
