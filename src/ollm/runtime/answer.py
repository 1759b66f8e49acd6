"""One streamed answer: pieces go out as events, and what has been said so far is on disk at least every two seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ollm.domain.context import Usage
from ollm.domain.events import Event, PrefillProgress, TextDelta, ThinkingDelta
from ollm.domain.messages import AnyPart, TextPart, ThinkingPart
from ollm.domain.text import format_count
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    FinishPiece,
    FinishReason,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
    WrittenPiece,
)

SAVE_INTERVAL_SECONDS = 2.0

SavePartial = Callable[[tuple[AnyPart, ...]], Awaitable[None]]


class StreamedAnswer:
    """What one request brought, readable at any moment: also after the stream stopped early."""

    def __init__(self, emit: Callable[[Event], None], save: SavePartial, monotonic: Callable[[], float]) -> None:
        self.calls: list[CallPiece] = []
        self.usage = Usage()
        self.finish: FinishReason = "unknown"
        self.cut = ""
        self.limit = 0
        self.started: float | None = None
        self._emit = emit
        self._save = save
        self._monotonic = monotonic
        self._saved_at = monotonic()
        self._written = ""
        self._passages: list[tuple[type[TextPart | ThinkingPart], list[str]]] = []

    async def read(self, pieces: AsyncIterator[AnyPiece], check_text: Callable[[str, bool], None]) -> None:
        """Take in the stream to its end; `check_text` gets every piece of text and may end it by raising."""
        async for piece in pieces:
            match piece:
                case TextPiece(text=text):
                    self._append_text(TextPart, text)
                    self._emit(TextDelta(text=text))
                case ThinkingPiece(text=text):
                    self._append_text(ThinkingPart, text)
                    self._emit(ThinkingDelta(text=text))
                case WrittenPiece(text=text):
                    self._written += text
                case CallPiece():
                    self.calls.append(piece)
                case ProgressPiece():
                    self._emit(
                        PrefillProgress(
                            processed=piece.processed,
                            total=piece.total,
                            stage=piece.stage,
                            seconds_left=piece.seconds_left,
                        )
                    )
                case FinishPiece():
                    self.finish, self.usage, self.cut, self.limit = piece.reason, piece.usage, piece.cut, piece.limit
            if isinstance(piece, TextPiece | ThinkingPiece | WrittenPiece):
                await self._save_periodically()
            if isinstance(piece, TextPiece | ThinkingPiece):
                check_text(piece.text, isinstance(piece, ThinkingPiece))

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """What was said and thought, in the order it came."""
        return tuple(kind(text) for kind, texts in self._passages if (text := "".join(texts)))

    @property
    def partial_parts(self) -> tuple[AnyPart, ...]:
        """The parts of an answer that broke off, with the text that may have become a call."""
        if not self._written:
            return self.parts
        return (*(part for part in self.parts if isinstance(part, ThinkingPart)), TextPart(self._written))

    @property
    def written(self) -> str:
        """The model's own text up to the end of its calls; empty where calls are not read from text."""
        return self._written.removesuffix(self.cut) if self.calls else ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    def describe_missing(self, limit: int, *, calls: bool) -> str:
        """What a person must know about an answer that is none or is cut off; `limit` is what there was room for."""
        if not self.parts and not calls:
            return "The model gave an empty answer. Rephrase, or switch with /model."
        if self.finish == "length" and self.limit:
            most = format_count(self.limit, "token")
            return f"The answer was stopped after {most}, the most that one of this model may take."
        if self.finish == "length" and 0 < self.usage.completion_tokens < limit // 2:
            length = format_count(self.usage.completion_tokens, "token")
            return f"The server cut the answer off after {length}; /continue resumes it."
        if self.finish == "length":
            return "The answer hit the end of the context window; /compact frees space."
        if not calls and not self.text.strip():
            return "The model only thought and gave no answer. Ask again, or switch with /model."
        return ""

    def _append_text(self, kind: type[TextPart | ThinkingPart], text: str) -> None:
        if self.started is None:
            self.started = self._monotonic()
        if not self._passages or self._passages[-1][0] is not kind:
            self._passages.append((kind, []))
        self._passages[-1][1].append(text)

    async def _save_periodically(self) -> None:
        if self._monotonic() - self._saved_at >= SAVE_INTERVAL_SECONDS:
            await self._save(self.partial_parts)
            self._saved_at = self._monotonic()
