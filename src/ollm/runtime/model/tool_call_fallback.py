"""Gets a model to call tools in any form it supports: native, written as text, or constrained to a schema.

Each answer starts with the form known to work. After a malformed call the model gets one hint about the mistake. If
that fails too, the next attempt is constrained to a call. The learnt facts are in `facts`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, ToolsUnsupportedError
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts, WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    PieceStream,
    ProgressPiece,
    Provider,
    TextPiece,
    ThinkingPiece,
    relay,
)
from ollm.providers.text_calls.rendering import (
    add_tool_list,
    build_call_schema,
    explain_calling,
    render_messages,
)
from ollm.services.loop_detection import StreamTracker

if TYPE_CHECKING:
    from ollm.providers.text_calls.stream_parser import CallStreamParser

MAX_BLANK_CHARS = 400  # characters of nothing but blank space in a row
MAX_BLANK_LINES = 60  # line breaks among them
MAX_CALL_REPEATS = 40  # how often a piece of a call may repeat: files hold such things too
MIN_READ_TOKENS = 100  # tokens that must have been read, and written, for a figure
MIN_WRITTEN_TOKENS = 16
MIN_MEASURED_SECONDS, MIN_UPDATE_SECONDS = 0.2, 1.0  # for a first figure, and for one that changes it
Messages = tuple[PromptMessage, ...]
ToolSchemas = tuple[ToolSchema, ...]


def format_request(messages: Messages, tools: ToolSchemas, facts: ModelFacts) -> tuple[Messages, ToolSchemas]:
    """Format messages and schemas for sending. Tools go in the system prompt if the server refuses schemas."""
    if tools and facts.call_form == "blocks":
        from ollm.runtime.small_models.rendering import render_block_messages

        return render_block_messages(messages, tools), ()
    if not tools or (facts.takes_tools and facts.result_form == "tool"):
        return messages, tools
    told = render_messages(messages, facts.written_form)
    return (told, tools) if facts.takes_tools else (add_tool_list(told, tools, facts.written_form), ())


class StreamWatch:
    """Watches the pieces of one answer as the server sends them, from its creation on: their speed, the end of the
    answer, and whether anything useful can still follow."""

    def __init__(self) -> None:
        self.finish = FinishPiece()
        self.repeats = False  # the same was written again and again
        self._begin = monotonic()
        self._first = self._last = 0.0
        self._loaded = True
        self._prompt_tokens = 0
        self._blank = ""  # that the answer ends with so far
        self._loop = StreamTracker("text", MAX_CALL_REPEATS)

    def observe_piece(self, piece: AnyPiece) -> None:
        match piece:
            case TextPiece() | ThinkingPiece():
                self._last = monotonic()
                self._first = self._first or self._last
            case ProgressPiece():
                self._loaded = self._loaded and piece.stage != "loading"
                self._prompt_tokens = max(self._prompt_tokens, piece.total)
            case FinishPiece():
                self.finish = piece

    def is_endless(self, text: str, *, held: bool) -> bool:
        """Return True if only whitespace comes, or the text `held` as a call repeats itself."""
        written = text.rstrip()
        self._blank = text[len(written) :] if written else self._blank + text
        self.repeats = self.repeats or (held and self._loop.add(text) is not None)
        return self.repeats or len(self._blank) > MAX_BLANK_CHARS or self._blank.count("\n") > MAX_BLANK_LINES

    def end_early(self) -> None:
        """Finish an answer that is not read to its end: only its prompt count is known."""
        if self.finish.reason == "unknown" and self._prompt_tokens:
            self.finish = FinishPiece("stop", Usage(prompt_tokens=self._prompt_tokens))

    def update_facts(self, facts: ModelFacts) -> ModelFacts:
        """Average the speeds, if this answer was long enough to measure. Cached tokens were not read: a server that
        does not report their number seems too fast, so only its own clock counts, and only if it is slower."""
        known, timed = facts.prefill_per_second, self.finish.read_seconds > 0
        shortest = MIN_MEASURED_SECONDS if known is None else MIN_UPDATE_SECONDS
        read, write = self.compute_speeds(MIN_READ_TOKENS, MIN_WRITTEN_TOKENS, shortest)
        slower = read is None or known is None or read < known
        counts = self._loaded or timed if self.finish.counts_reuse else timed and slower
        return facts.average_speeds(read if counts else None, write)

    def compute_speeds(
        self, min_read: int = 1, min_written: int = 2, min_seconds: float = 0.0
    ) -> tuple[float | None, float | None]:
        """Compute the tokens read and written per second; None if there were too few, or the server did not count."""
        usage, writing = self.finish.usage, self._last - self._first
        reading = self.finish.read_seconds or self._first - self._begin
        fresh, written = usage.prompt_tokens - usage.reused_tokens, usage.completion_tokens
        read = round(fresh / reading, 1) if fresh >= min_read and reading > min_seconds else None
        return read, round((written - 1) / writing, 1) if written >= min_written and writing > min_seconds else None


class AnswerParser:
    """Parses one answer."""

    def __init__(self, tools: Sequence[ToolSchema], *, careful: bool = False) -> None:
        self.calls: list[CallPiece] = []
        self.finish = FinishPiece()
        self.native = False
        self.form: WrittenForm | None = None
        self.rejected = ""
        self.mistake = ""
        self._tools = tools
        self._careful = careful
        self.watch = StreamWatch()

    @cached_property
    def _call_text(self) -> CallStreamParser:
        """Parser for calls in text, created when the answer begins so that it does not delay the request."""
        from ollm.providers.text_calls.stream_parser import CallStreamParser

        return CallStreamParser(self._tools, careful=self._careful)

    @property
    def call_failed(self) -> bool:
        """True if the model attempted a call and none could be parsed."""
        return not self.calls and bool(self.rejected)

    @property
    def shown_text(self) -> str:
        return self._call_text.shown

    @property
    def full_text(self) -> str:
        return self.shown_text + self.rejected

    async def parse_stream(self, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
        """Yield the visible pieces as they come. Hold back the finish and the calls."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.watch.observe_piece(piece)
                match piece:
                    case TextPiece(text=text):
                        if shown := self._call_text.feed(text):
                            yield TextPiece(shown)
                        if self._should_stop(text):
                            self.watch.end_early()
                            break
                    case CallPiece():
                        self._add_native_call(piece)
                    case FinishPiece():
                        pass
                    case _:
                        yield piece
        self.finish = self.watch.finish
        if shown := self._finish_parsing():
            yield TextPiece(shown)

    def _add_native_call(self, piece: CallPiece) -> None:
        from ollm.providers.text_calls.repair import repair_arguments

        self.native = True
        arguments = piece.arguments if isinstance(piece.arguments, dict) else repair_arguments(piece.arguments)
        self.calls.append(CallPiece(piece.name, arguments, piece.id))

    def _should_stop(self, text: str) -> bool:
        """Return True if nothing useful can follow."""
        return self._call_text.is_over or self.watch.is_endless(text, held=bool(self._call_text.held_text))

    def _finish_parsing(self) -> str:
        shown = self._call_text.finish()
        if self.native:
            return shown
        self.calls += self._call_text.calls
        self.form = self._call_text.form
        if self._call_text.attempts:
            self.rejected = "".join(attempt.text for attempt in self._call_text.attempts)
            self.mistake = self._call_text.attempts[0].mistake
        return shown


MAX_CALL_TOKENS = 1024  # tokens of a call that is bound to a schema: a small model that writes more has lost its way
MAX_STUMBLED_ANSWERS = 2  # answers that needed the schema, after which it is used from the start


class ToolCallFallback:
    """One answer to one request with tools. `stumbles` counts the previous answers that needed the schema."""

    def __init__(self, provider: Provider, request: ChatRequest, facts: ModelFacts, stumbles: int = 0) -> None:
        self.facts = self.counted = facts  # `counted`: by what the request was sent whose prompt tokens are reported
        self.stumbles = stumbles
        self._provider = provider
        self._request = request
        self._usage = Usage()
        self.advice = ""  # how the server would take tools, when it refused them

    def stream_answer(self) -> AsyncGenerator[AnyPiece, None]:
        """Yield text as it comes, calls once they are complete and valid, and one finish."""
        return relay(self._run_attempts())

    async def _run_attempts(self) -> AsyncGenerator[AnyPiece | PieceStream, None]:
        parser = self.create_parser()
        yield self.request_answer(parser)
        if again := self._revise_facts(parser):
            self.facts = again
            parser = self.create_parser()
            yield self.request_answer(parser)
        if parser.call_failed:
            yield self._retry_call(parser)
        self._learn_from_answer(parser)
        for call in parser.calls:
            yield call
        if not parser.calls and parser.rejected:
            yield TextPiece(parser.rejected)
        yield FinishPiece("tool_calls" if parser.calls else parser.finish.reason, self._usage)

    def _render_request(self) -> ChatRequest:
        messages, tools = format_request(self._request.messages, self._request.tools, self.facts)
        return replace(self._request, messages=messages, tools=tools)

    def create_parser(self) -> AnswerParser:
        return AnswerParser(self._request.tools, careful=self.facts.call_form == "native")

    async def request_answer(
        self, parser: AnswerParser, request: ChatRequest | None = None
    ) -> AsyncGenerator[AnyPiece, None]:
        """Send `request`, or the standard request without one. The outcome is in `parser`."""
        request, answered = request or self._render_request(), False
        while not answered:
            try:
                async with aclosing(parser.parse_stream(self._provider.stream(request))) as pieces:
                    async for piece in pieces:
                        yield piece
                answered = True
            except ToolsUnsupportedError as error:
                if not request.tools:
                    raise
                self.advice = error.action
                self.facts = replace(self.facts, takes_tools=False, result_form="user")
                request = self._render_request()
        self.facts = parser.watch.update_facts(self.facts)
        self._count_usage(parser.finish.usage)

    async def _retry_call(self, parser: AnswerParser) -> AsyncGenerator[AnyPiece, None]:
        """Send one hint about the mistake; then, if the server can, request a call constrained to the schema. A model
        known to need the schema gets no hint. Text of the second attempt is shown only if it is the answer."""
        if self.facts.call_form == "constrained":
            parser.calls = await self.request_constrained_calls(parser)
            return
        second = self.create_parser()
        text = ""
        async with aclosing(self.request_answer(second, self._build_retry_request(parser))) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextPiece):
                    text += piece.text
                else:
                    yield piece
        parser.finish = second.finish
        if second.call_failed:
            parser.calls = await self.request_constrained_calls(parser)
            return
        parser.calls, parser.form, parser.rejected = second.calls, second.form, ""
        if text and not second.calls:
            yield TextPiece(text)

    def _build_retry_request(self, parser: AnswerParser) -> ChatRequest:
        request = self._render_request()
        how = explain_calling(self._request.tools, self.facts.written_form)
        words = f"That was no tool call: {parser.mistake} {how}\nOr answer in words."
        said = PromptMessage(role="assistant", content=parser.full_text)
        return replace(request, messages=(*request.messages, said, PromptMessage(role="user", content=words)))

    async def request_constrained_calls(self, parser: AnswerParser) -> list[CallPiece]:
        """Request a call constrained to the schema of the offered tools. Return [] if the server cannot do that. A
        server that ignores the schema is detected and not tried again."""
        from ollm.providers.text_calls.repair import parse_calls

        self.stumbles += 1
        if not self.facts.binds_answers:
            return []
        plain = render_messages(self._request.messages, self.facts.written_form)
        words = PromptMessage(role="user", content=f"Call the tool now. {parser.mistake}".strip())
        request = replace(
            self._request,
            messages=(*add_tool_list(plain, self._request.tools, self.facts.written_form), words),
            tools=(),
            response_schema=build_call_schema(self._request.tools),
            max_tokens=min(self._request.max_tokens or MAX_CALL_TOKENS, MAX_CALL_TOKENS),
            temperature=0,
        )
        try:
            text = await self._collect_text(self._provider.stream(request))
        except ModelError:
            return []
        if text.strip() and not text.lstrip().startswith("{"):
            self.facts = replace(self.facts, binds_answers=False)
        whole = text.rstrip().endswith("}")  # a value that was cut off would be incomplete
        return list(parse_calls(text, {tool.name: tool for tool in self._request.tools}).calls) if whole else []

    async def _collect_text(self, pieces: AsyncGenerator[AnyPiece, None]) -> str:
        parser, watch = AnswerParser(()), StreamWatch()
        text = ""
        async with aclosing(parser.parse_stream(pieces)) as heard:
            async for piece in heard:
                text += piece.text if isinstance(piece, TextPiece) else ""
                if isinstance(piece, TextPiece) and watch.is_endless(piece.text, held=True):
                    break
        self.facts = parser.watch.update_facts(self.facts)
        self._count_usage(parser.finish.usage)
        return text

    def _revise_facts(self, parser: AnswerParser) -> ModelFacts | None:
        """Return corrected facts if the answer disproves the current ones. The request is then sent again."""
        writes = self.facts.result_form != "user" and self.facts.call_form != "native"
        if writes and self._were_made_before(parser.calls):  # it did not take the result for what it is
            return replace(self.facts, result_form="user")
        return None

    def _were_made_before(self, calls: list[CallPiece]) -> bool:
        """Return True if all these calls were already made since the user's last message."""
        turn = takewhile(lambda message: message.role != "user", reversed(self._request.messages))
        made = [(call.name, call.arguments) for message in turn for call in message.calls]
        return bool(calls) and all((call.name, call.arguments) in made for call in calls)

    def _learn_from_answer(self, parser: AnswerParser) -> None:
        if parser.native:
            self.facts = replace(self.facts, call_form="native")
        elif parser.form:
            self._learn_form(parser.form)
        may_bind = self.facts.binds_answers and self.facts.call_form in ("unknown", "text")
        if self.stumbles >= MAX_STUMBLED_ANSWERS and may_bind:
            self.facts = replace(self.facts, call_form="constrained")

    def _learn_form(self, form: WrittenForm) -> None:
        """Record the call form. A model that ignores its template's call form does not take its result form either."""
        if self.facts.call_form in ("unknown", "none"):
            self.facts = replace(self.facts, call_form="text", result_form="user")
        self.facts = replace(self.facts, written_form=form)

    def _count_usage(self, usage: Usage) -> None:
        """Count prompt tokens of the first request, and add up completion tokens."""
        if not self._usage.prompt_tokens:
            self.counted = self.facts
        self._usage = Usage(
            prompt_tokens=self._usage.prompt_tokens or usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens + usage.completion_tokens,
            reused_tokens=self._usage.reused_tokens or usage.reused_tokens,
        )
