"""Parses one streamed answer: takes calls out of its text, cuts endless blank space short, measures its speed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.context import Usage
from ollm.domain.model_facts import ModelFacts, WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, ProgressPiece, TextPiece, ThinkingPiece
from ollm.providers.text_calls.rendering import ANSWER_TOOL
from ollm.services.loop_detection import StreamTracker

if TYPE_CHECKING:
    from ollm.providers.text_calls.stream_parser import CallStreamParser

MAX_BLANK_CHARS = 400  # characters of nothing but blank space in a row
MAX_BLANK_LINES = 60  # line breaks among them
MAX_CALL_REPEATS = 40  # how often a piece of a call may repeat: files hold such things too
MIN_READ_TOKENS = 100  # tokens that must have been read, and written, for a figure
MIN_WRITTEN_TOKENS = 16
MIN_MEASURED_SECONDS = 0.2


class SpeedMeter:
    """Begins when it is made; hears the pieces of one answer as the server sends them."""

    def __init__(self) -> None:
        self._begin = monotonic()
        self._first = self._last = 0.0
        self._loaded = True
        self._finish = FinishPiece()

    def observe_piece(self, piece: AnyPiece) -> None:
        match piece:
            case TextPiece() | ThinkingPiece():
                self._last = monotonic()
                self._first = self._first or self._last
            case ProgressPiece(stage="loading"):
                self._loaded = False
            case FinishPiece():
                self._finish = piece

    def update_facts(self, facts: ModelFacts) -> ModelFacts:
        """The facts with the speeds that were not known yet, where this answer was long enough to tell. What a server
        took from its cache was not read: where it does not say how much that was, no speed of reading is learnt."""
        usage = self._finish.usage
        fresh, written = usage.prompt_tokens - usage.reused_tokens, usage.completion_tokens
        reading, writing = self._first - self._begin, self._last - self._first
        if (
            facts.prefill_per_second is None
            and self._loaded
            and self._finish.counts_reuse
            and fresh >= MIN_READ_TOKENS
            and reading > MIN_MEASURED_SECONDS
        ):
            facts = replace(facts, prefill_per_second=round(fresh / reading, 1))
        if facts.decode_per_second is None and written >= MIN_WRITTEN_TOKENS and writing > MIN_MEASURED_SECONDS:
            facts = replace(facts, decode_per_second=round((written - 1) / writing, 1))
        return facts


class AnswerParser:
    """`bound` stops at the first sign of a call, so that it can be written under a schema."""

    def __init__(self, tools: Sequence[ToolSchema], *, careful: bool = False, bound: bool = False) -> None:
        self.calls: list[CallPiece] = []
        self.finish = FinishPiece()
        self.native = False
        self.form: WrittenForm | None = None
        self.rejected = ""
        self.mistake = ""
        self.wants_schema = False
        self._tools = tools
        self._careful = careful
        self._may_answer = ANSWER_TOOL in tools
        self._bound = bound
        self._blank = ""
        self._loop = StreamTracker("text", MAX_CALL_REPEATS)
        self._prompt_tokens = 0
        self.pace = SpeedMeter()

    @cached_property
    def _call_text(self) -> CallStreamParser:
        """Made when the answer begins: the request is on its way before calls in text are thought about."""
        from ollm.providers.text_calls.stream_parser import CallStreamParser

        return CallStreamParser(self._tools, careful=self._careful)

    @property
    def call_failed(self) -> bool:
        """A call was meant, and none came of it."""
        return not self.calls and bool(self.rejected)

    @property
    def shown_text(self) -> str:
        return self._call_text.shown

    @property
    def full_text(self) -> str:
        return self.shown_text + self.rejected

    async def parse_stream(self, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
        """What may be seen, as it comes. The end and the calls are kept back."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.pace.observe_piece(piece)
                match piece:
                    case TextPiece(text=text):
                        if shown := self._call_text.feed(text):
                            yield TextPiece(shown)
                        if self._should_stop(text):
                            break
                    case CallPiece() if self._is_answer(piece):
                        yield TextPiece(get_answer_text(piece))
                    case CallPiece():
                        self._add_native_call(piece)
                    case FinishPiece():
                        self.finish = piece
                    case _:
                        self._track_progress(piece)
                        yield piece
            else:
                self._prompt_tokens = 0
        if shown := self._finish_parsing():
            yield TextPiece(shown)

    def _is_answer(self, call: CallPiece) -> bool:
        return self._may_answer and call.name == ANSWER_TOOL.name

    def _add_native_call(self, piece: CallPiece) -> None:
        from ollm.providers.text_calls.repair import repair_arguments

        self.native = True
        arguments = piece.arguments if isinstance(piece.arguments, dict) else repair_arguments(piece.arguments)
        self.calls.append(CallPiece(piece.name, arguments))

    def _should_stop(self, text: str) -> bool:
        """Whether nothing good can follow."""
        if self._bound and self._call_text.is_calling:
            self.wants_schema = True
            return True
        self._blank = self._blank + text if not text.strip() else text[len(text.rstrip()) :]
        endless = len(self._blank) > MAX_BLANK_CHARS or self._blank.count("\n") > MAX_BLANK_LINES
        return (
            self._call_text.is_over or endless or (bool(self._call_text.held_text) and self._loop.add(text) is not None)
        )

    def _track_progress(self, piece: AnyPiece) -> None:
        if isinstance(piece, ProgressPiece):
            self._prompt_tokens = max(self._prompt_tokens, piece.total)

    def _finish_parsing(self) -> str:
        if self.finish.reason == "unknown" and self._prompt_tokens:
            self.finish = FinishPiece("stop", Usage(prompt_tokens=self._prompt_tokens))
        if self.wants_schema:
            return ""
        shown = self._call_text.finish()
        if self.native:
            return shown
        self.calls += [call for call in self._call_text.calls if not self._is_answer(call)]
        shown += "\n".join(get_answer_text(call) for call in self._call_text.calls if self._is_answer(call))
        self.form = self._call_text.form
        if self._call_text.attempts:
            self.rejected = "".join(attempt.text for attempt in self._call_text.attempts)
            self.mistake = self._call_text.attempts[0].mistake
        return shown


def get_answer_text(call: CallPiece) -> str:
    """The words of a call that is none."""
    return str(call.arguments.get("text", "")) if isinstance(call.arguments, dict) else call.arguments
