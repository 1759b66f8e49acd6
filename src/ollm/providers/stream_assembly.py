"""Assembly of streamed chunks of the OpenAI chat API into text, thinking and whole calls."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ollm.domain.context import Usage
from ollm.domain.errors import ModelError
from ollm.domain.messages import JsonObject, ThinkingField
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    FinishPiece,
    FinishReason,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
    as_entries,
    as_mapping,
    as_text,
    as_thinking,
    join_details,
    parse_arguments,
)
from ollm.providers.server_errors import as_int

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
THINKING_FIELDS: tuple[ThinkingField, ...] = ("reasoning_content", "reasoning")
MAX_CALL_CHARACTERS = 8 << 20  # A broken server may send a call without end.
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
    def arguments_text(self) -> str:
        if len(self._written) > 1:
            self._written = ["".join(self._written)]
        return "".join(self._written)

    @property
    def is_complete(self) -> bool:
        return self.whole is not None or (
            bool(self.arguments_text.strip()) and isinstance(parse_arguments(self.arguments_text), dict)
        )

    def build_piece(self) -> CallPiece:
        arguments = self.whole if self.whole is not None else parse_arguments(self.arguments_text)
        return CallPiece(self.name, arguments, self.identity)


class StreamAssembler:
    """A converter from decoded chunks to pieces; `finish` returns the calls and the end."""

    def __init__(self) -> None:
        self._calls: list[CallFragments] = []
        self._by_index: dict[int, CallFragments] = {}
        self._reason: FinishReason | None = None
        self._field: ThinkingField = ""
        self._details: list[JsonObject] = []
        self._end = FinishPiece(counts_reuse=False)
        self._call_characters = 0
        self.grew = False  # It is set if the last chunk brought something.
        self.model = ""  # It is the name that the server gives its model.
        self.writing = False  # It is set once text, thinking or a part of a call came.

    @property
    def is_complete(self) -> bool:
        """True if the server gave the reason it stopped."""
        return self._reason is not None

    @property
    def calls_complete(self) -> bool:
        """True if calls were made and all of them are complete."""
        return bool(self._calls) and all(call.is_complete for call in self._calls)

    def add_chunk(self, chunk: dict[str, Any]) -> list[AnyPiece]:
        before = self._call_characters, self._reason
        if chunk.get("usage") or chunk.get("timings"):
            self._update_usage(chunk)
        if chunk.get("truncated") is True:
            self._end = replace(self._end, truncated=True)
        self.model = self.model or as_text(chunk.get("model"))
        pieces: list[AnyPiece] = []
        if progress := as_mapping(chunk.get("prompt_progress")):
            processed, total, cached = (as_int(progress.get(name)) for name in ("processed", "total", "cache"))
            pieces.append(ProgressPiece(processed, total, cached=cached))
        for choice in as_entries(chunk.get("choices"))[:1]:
            pieces += self._read_choice(choice)
        self.grew = bool(pieces) or before != (self._call_characters, self._reason)
        return pieces

    def finish(self) -> list[AnyPiece]:
        end = replace(self._end, reason=self._reason or "unknown")
        thought = [ThinkingPiece("", "reasoning", join_details(self._details))] if self._details else []
        return [*thought, *(call.build_piece() for call in self._calls), end]

    def _read_choice(self, choice: dict[str, Any]) -> list[AnyPiece]:
        delta = as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))
        if reason := as_text(choice.get("finish_reason")):
            self._reason = REASONS.get(reason, "unknown")
        for entry in as_entries(delta.get("tool_calls")):
            self._add_fragment(entry)
            self.writing = True
        pieces: list[AnyPiece] = []
        self._details += as_entries(delta.get("reasoning_details"))
        pieces += self._read_thinking(delta)
        if content := as_text(delta.get("content")):
            pieces.append(TextPiece(content))
        self.writing = self.writing or bool(pieces)
        return pieces

    def _read_thinking(self, delta: dict[str, Any]) -> list[AnyPiece]:
        """Read thinking from the field of this server. The same text in both fields counts once."""
        found = {name: text for name in THINKING_FIELDS if (text := as_thinking(delta.get(name)))}
        self._field = self._field or next(iter(found), "")
        return [ThinkingPiece(text, self._field) for text in dict.fromkeys(found.values())]

    def _add_fragment(self, entry: dict[str, Any]) -> None:
        """Add a fragment. Servers distinguish calls by index, by id alone, or by order."""
        identity, function = as_text(entry.get("id")), as_mapping(entry.get("function"))
        index = as_int(entry.get("index")) if "index" in entry else max(0, len(self._calls) - (0 if identity else 1))
        call = self._by_index.get(index)
        other = bool(identity and call and call.identity and identity != call.identity)
        if call is None or (function.get("name") and (other or (function.get("arguments") and call.is_complete))):
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
        details, before = as_mapping(usage.get("prompt_tokens_details")), self._end
        reports_reuse = "cached_tokens" in details or "cache_n" in timings or "prompt_n" in timings
        reused = as_int(details.get("cached_tokens")) or as_int(timings.get("cache_n"))
        read = as_int(timings.get("prompt_n")) + as_int(timings.get("cache_n"))
        written = as_int(usage.get("completion_tokens")) or as_int(timings.get("predicted_n"))
        counted = Usage(
            prompt_tokens=as_int(usage.get("prompt_tokens")) or read or before.usage.prompt_tokens,
            completion_tokens=written or before.usage.completion_tokens,
            reused_tokens=reused or before.usage.reused_tokens,
        )
        seconds = as_int(timings.get("prompt_ms")) / 1000 or before.read_seconds
        reuses = before.counts_reuse or reports_reuse
        self._end = replace(before, usage=counted, counts_reuse=reuses, read_seconds=seconds)
