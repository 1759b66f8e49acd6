"""One streamed answer listened to: calls taken out of its text, endless blank space and runaway calls cut short."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING

from ollm.domain.context import Usage
from ollm.domain.model_facts import WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, CallPiece, FinishPiece, ProgressPiece, TextPiece
from ollm.providers.text_calls.rendering import ANSWER
from ollm.runtime.model.speed import Pace
from ollm.services.loop_detection.streamed_text import StreamedText

if TYPE_CHECKING:
    from ollm.providers.text_calls.stream_parser import CallText

BLANKS = 400  # characters of nothing but blank space in a row
LINES = 60  # line breaks among them
TIMES = 40  # how often a piece of a call may repeat: files hold such things too


class Hearing:
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
        self._may_answer = ANSWER in tools
        self._bound = bound
        self._blank = ""
        self._loop = StreamedText("text", TIMES)
        self._prompt_tokens = 0
        self.pace = Pace()

    @cached_property
    def _written(self) -> CallText:
        """Made when the answer begins: the request is on its way before calls in text are thought about."""
        from ollm.providers.text_calls.stream_parser import CallText

        return CallText(self._tools, careful=self._careful)

    @property
    def failed(self) -> bool:
        """A call was meant, and none came of it."""
        return not self.calls and bool(self.rejected)

    @property
    def shown(self) -> str:
        return self._written.shown

    @property
    def said(self) -> str:
        return self.shown + self.rejected

    async def hear(self, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
        """What may be seen, as it comes. The end and the calls are kept back."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.pace.hear(piece)
                match piece:
                    case TextPiece(text=text):
                        if shown := self._written.feed(text):
                            yield TextPiece(shown)
                        if self._enough(text):
                            break
                    case CallPiece() if self._is_answer(piece):
                        yield TextPiece(answered(piece))
                    case CallPiece():
                        self._take(piece)
                    case FinishPiece():
                        self.finish = piece
                    case _:
                        self._notice(piece)
                        yield piece
            else:
                self._prompt_tokens = 0
        if shown := self._end():
            yield TextPiece(shown)

    def _is_answer(self, call: CallPiece) -> bool:
        return self._may_answer and call.name == ANSWER.name

    def _take(self, piece: CallPiece) -> None:
        from ollm.providers.text_calls.repair import mended

        self.native = True
        arguments = piece.arguments if isinstance(piece.arguments, dict) else mended(piece.arguments)
        self.calls.append(CallPiece(piece.name, arguments))

    def _enough(self, text: str) -> bool:
        """Whether nothing good can follow."""
        if self._bound and self._written.calling:
            self.wants_schema = True
            return True
        self._blank = self._blank + text if not text.strip() else text[len(text.rstrip()) :]
        endless = len(self._blank) > BLANKS or self._blank.count("\n") > LINES
        return self._written.over or endless or (bool(self._written.held) and self._loop.add(text) is not None)

    def _notice(self, piece: AnyPiece) -> None:
        if isinstance(piece, ProgressPiece):
            self._prompt_tokens = max(self._prompt_tokens, piece.total)

    def _end(self) -> str:
        if self.finish.reason == "unknown" and self._prompt_tokens:
            self.finish = FinishPiece("stop", Usage(prompt_tokens=self._prompt_tokens))
        if self.wants_schema:
            return ""
        shown = self._written.finish()
        if self.native:
            return shown
        self.calls += [call for call in self._written.calls if not self._is_answer(call)]
        shown += "\n".join(answered(call) for call in self._written.calls if self._is_answer(call))
        self.form = self._written.form
        if self._written.attempts:
            self.rejected = "".join(attempt.text for attempt in self._written.attempts)
            self.mistake = self._written.attempts[0].mistake
        return shown


def answered(call: CallPiece) -> str:
    """The words of a call that is none."""
    return str(call.arguments.get("text", "")) if isinstance(call.arguments, dict) else call.arguments
