"""A streamed answer put together: text as it comes, calls out of their fragments, counts at the end."""

from __future__ import annotations

from typing import Any

from ollm.domain.context import Usage
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, FinishReason, ProgressPiece, TextPiece, ThinkingPiece
from ollm.providers.server_errors import as_int
from ollm.providers.wire import arguments, entries, mapping, text

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
DONE = "[DONE]"


class Fragments:
    """One call as its pieces arrive."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.name = ""
        self.written = ""
        self.whole: dict[str, Any] | None = None

    def add(self, function: dict[str, Any]) -> None:
        self.name += text(function.get("name"))
        given = function.get("arguments")
        if isinstance(given, dict):
            self.whole = given
        self.written += text(given)

    @property
    def ended(self) -> bool:
        return self.whole is not None or (bool(self.written.strip()) and isinstance(arguments(self.written), dict))

    def piece(self) -> CallPiece:
        return CallPiece(self.name, self.whole if self.whole is not None else arguments(self.written))


class Assembly:
    """Takes decoded chunks, gives pieces; `finish` gives the calls and the end."""

    def __init__(self) -> None:
        self._calls: list[Fragments] = []
        self._by_index: dict[int, Fragments] = {}
        self._reason: FinishReason | None = None
        self._usage = Usage()
        self.writing = False  # the model has begun: text, thinking or a fragment of a call came

    @property
    def ended(self) -> bool:
        """Whether the server said why it stopped."""
        return self._reason is not None

    @property
    def called(self) -> bool:
        """Calls were made, and all that came of them is whole."""
        return bool(self._calls) and all(call.ended for call in self._calls)

    def take(self, chunk: dict[str, Any]) -> list[AnyPiece]:
        self._count(chunk)
        pieces: list[AnyPiece] = []
        if progress := mapping(chunk.get("prompt_progress")):
            pieces.append(ProgressPiece(as_int(progress.get("processed")), as_int(progress.get("total"))))
        for choice in entries(chunk.get("choices"))[:1]:
            pieces += self._choice(choice)
        return pieces

    def finish(self) -> list[AnyPiece]:
        reason = "tool_calls" if self._calls else self._reason or "unknown"
        return [*(call.piece() for call in self._calls), FinishPiece(reason, self._usage)]

    def _choice(self, choice: dict[str, Any]) -> list[AnyPiece]:
        delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
        if ended := text(choice.get("finish_reason")):
            self._reason = REASONS.get(ended, "unknown")
        for entry in entries(delta.get("tool_calls")):
            self._fragment(entry)
            self.writing = True
        pieces: list[AnyPiece] = []
        if thinking := text(delta.get("reasoning_content")) or text(delta.get("reasoning")):
            pieces.append(ThinkingPiece(thinking))
        if content := text(delta.get("content")):
            pieces.append(TextPiece(content))
        self.writing = self.writing or bool(pieces)
        return pieces

    def _fragment(self, entry: dict[str, Any]) -> None:
        """Some servers number every call 0 and tell them apart by id alone, some give no number at all."""
        identity, function = text(entry.get("id")), mapping(entry.get("function"))
        index = as_int(entry.get("index")) if "index" in entry else max(0, len(self._calls) - (0 if identity else 1))
        call = self._by_index.get(index)
        if call is None or (identity and call.identity and identity != call.identity and function.get("name")):
            call = self._by_index[index] = Fragments(identity)
            self._calls.append(call)
        call.add(function)

    def _count(self, chunk: dict[str, Any]) -> None:
        usage, timings = mapping(chunk.get("usage")), mapping(chunk.get("timings"))
        details = mapping(usage.get("prompt_tokens_details"))
        if not usage and not timings:
            return
        reused = as_int(details.get("cached_tokens")) or as_int(timings.get("cache_n"))
        read = as_int(timings.get("prompt_n")) + as_int(timings.get("cache_n"))
        self._usage = Usage(
            prompt_tokens=as_int(usage.get("prompt_tokens")) or read or self._usage.prompt_tokens,
            completion_tokens=as_int(usage.get("completion_tokens"))
            or as_int(timings.get("predicted_n"))
            or self._usage.completion_tokens,
            reused_tokens=reused or self._usage.reused_tokens,
        )
