"""Gets a model to call tools in the form it supports: native, or written as text.

Text is a call only for a model that is known to write calls as text. For an unknown one a probe finds that out, once,
when its answer ends like a call. After a malformed call the model gets one hint about the mistake. The learnt facts
are in `facts`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, ToolsUnsupportedError
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ALL_WRITTEN_FORMS, ModelFacts, WrittenForm
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    ProgressPiece,
    Provider,
    TextPiece,
    ThinkingPiece,
    join_messages,
)
from ollm.providers.text_calls.rendering import (
    add_tool_list,
    choose_plainest,
    explain_calling,
    make_example_call,
    render_messages,
)
from ollm.services.loop_detection import StreamTracker

if TYPE_CHECKING:
    from ollm.providers.text_calls.stream_parser import CallStreamParser, WrittenCalls

MAX_BLANK_CHARS = 400
MAX_BLANK_LINES = 60
MAX_CALL_REPEATS = 40  # Files repeat themselves too.
MIN_READ_TOKENS = 100  # Fewer tokens give no useful speed.
MIN_WRITTEN_TOKENS = 16
MIN_MEASURED_SECONDS, MIN_UPDATE_SECONDS = 0.2, 1.0
Messages = tuple[PromptMessage, ...]
ToolSchemas = tuple[ToolSchema, ...]


def format_request(messages: Messages, tools: ToolSchemas, facts: ModelFacts) -> tuple[Messages, ToolSchemas]:
    """Format messages and schemas for sending. Tools go in the system prompt if the server refuses schemas, and that
    into the user's message if the template drops it."""
    messages, tools = _format_calls(messages, tools, facts)
    return (fold_system_messages(messages) if facts.system_form == "user" else messages), tools


def _format_calls(messages: Messages, tools: ToolSchemas, facts: ModelFacts) -> tuple[Messages, ToolSchemas]:
    if tools and facts.call_form == "blocks":
        from ollm.runtime.small_models.rendering import render_block_messages

        return render_block_messages(messages, tools), ()
    if not tools or (facts.takes_tools and facts.result_form == "tool"):
        return messages, tools
    told = render_messages(messages, facts.written_form)
    return (told, tools) if facts.takes_tools else (add_tool_list(told, tools, facts.written_form), ())


def fold_system_messages(messages: Messages) -> Messages:
    """Put each system message in front of the user message after it, or make it a user message."""
    folded: list[PromptMessage] = []
    for message in messages:
        if message.role == "user" and folded and folded[-1].role == "system":
            folded[-1] = replace(join_messages(folded[-1], message), role="user")
        else:
            folded.append(message)
    return tuple(replace(message, role="user") if message.role == "system" else message for message in folded)


async def stream_pieces(provider: Provider, request: ChatRequest, facts: ModelFacts) -> AsyncGenerator[AnyPiece, None]:
    """Stream an answer with its thought separated: one that begins with `<think>`, or whose prompt did."""
    splitter, begun, opened = None, False, facts.thinking == "opened"
    async with aclosing(provider.stream(request)) as pieces:
        async for piece in pieces:
            if not begun and isinstance(piece, TextPiece):
                begun = True
                if opened or piece.text.lstrip()[:1] in ("", "<"):
                    from ollm.runtime.model.thinking import ThinkingSplitter

                    splitter = ThinkingSplitter(opened=opened)
            for part in splitter.split(piece) if splitter else (piece,):
                yield part


class StreamWatch:
    """Watches the pieces of one answer as the server sends them, from its creation on: their speed, the end of the
    answer, and whether anything useful can still follow."""

    def __init__(self) -> None:
        self.finish = FinishPiece()
        self.repeats = False
        self._begin = monotonic()
        self._first = self._last = 0.0
        self._loaded = True
        self._prompt_tokens = 0
        self._blank = ""
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
    """Parses one answer. Calls are read from its text in these `forms` only."""

    def __init__(self, tools: Sequence[ToolSchema], forms: Collection[WrittenForm] = ()) -> None:
        self.native: list[CallPiece] = []
        self.finish = FinishPiece()
        self.watch = StreamWatch()
        self._tools = tools
        self.forms = forms

    @cached_property
    def text(self) -> CallStreamParser:
        """Parser for calls in text, created when the answer begins so that it does not delay the request."""
        from ollm.providers.text_calls.stream_parser import CallStreamParser

        return CallStreamParser(self._tools, self.forms)

    @property
    def written(self) -> WrittenCalls | None:
        """The calls at the end of the text, or the attempt at one, if the model made no native calls."""
        return None if self.native else self.text.found

    @property
    def calls(self) -> list[CallPiece]:
        return self.native or list(self.written.calls if self.written else ())

    @property
    def mistake(self) -> str:
        """The reason why an attempt at a call in the text is not a call."""
        return self.written.mistake if self.written else ""

    async def parse_stream(self, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
        """Yield the visible pieces as they come. Hold back the finish and the calls."""
        async with aclosing(pieces):
            async for piece in pieces:
                self.watch.observe_piece(piece)
                match piece:
                    case TextPiece(text=text):
                        if shown := self.text.feed(text):
                            yield TextPiece(shown)
                        if self.watch.is_endless(text, held=bool(self.text.held)):
                            self.watch.end_early()
                            break
                    case CallPiece():
                        self.native.append(piece)
                    case FinishPiece():
                        pass
                    case _:
                        yield piece
        self.finish = self.watch.finish
        if self.finish.reason in ("stop", "tool_calls"):  # Otherwise the last call may lack its end.
            self.native = list(map(_repair_call, self.native))
        if shown := self.text.finish():
            yield TextPiece(shown)
        if self.native and self.text.held:
            yield TextPiece(self.text.held)


def _repair_call(piece: CallPiece) -> CallPiece:
    if isinstance(piece.arguments, dict):
        return piece
    from ollm.providers.text_calls.repair import repair_arguments

    return CallPiece(piece.name, repair_arguments(piece.arguments), piece.id)


MAX_CALL_TOKENS = 1024  # A model that writes a longer call has lost its way.


class ToolCallFallback:
    """One answer to one request. Without tools it is text alone."""

    def __init__(self, provider: Provider, request: ChatRequest, facts: ModelFacts, *, may_probe: bool = True) -> None:
        self.facts = self.counted = facts  # The server counted the prompt of `counted`.
        self._provider = provider
        self._request = request
        self._usage = Usage()
        self.may_probe = may_probe
        self.advice = ""

    async def stream_answer(self) -> AsyncGenerator[AnyPiece, None]:
        """Yield text as it comes, calls once they are complete and valid, and one finish."""
        parser = self.create_parser()
        async with aclosing(self.request_answer(parser)) as pieces:
            async for piece in pieces:
                yield piece
        calls, text = parser.calls, parser.text.held
        if parser.written and not await self._writes_calls(parser.written.form):
            calls = []
        elif parser.mistake and self.facts.call_form == "text":
            calls, text = await self._retry_call(parser)
        if parser.native and self._request.tools:
            self.facts = replace(self.facts, call_form="native")
        elif text and not calls:
            yield TextPiece(text)
        for call in calls:
            yield call
        reason = "tool_calls" if calls else parser.finish.reason
        yield replace(parser.finish, reason=reason, usage=self._usage)

    async def _writes_calls(self, form: WrittenForm) -> bool:
        """Find out whether the model calls in this form, once in a conversation unless it is known to."""
        if self.may_probe and (self.facts.call_form == "unknown" or self.facts.written_form != form):
            self.may_probe = False
            self.facts = await self.probe_call_form()
        return self.facts.call_form == "text" and self.facts.written_form == form

    async def probe_call_form(self) -> ModelFacts:
        """Ask for a call with a random word. Only a call with that word, native or as the whole end of the text, tells
        how the model calls. A server that passes such text on does not recognize the model's calls."""
        import secrets

        from ollm.providers.server_kind import find_remedy, identify_server

        word, tool = secrets.token_hex(4), choose_plainest(self._request.tools)
        name = next(iter(make_example_call(tool).arguments), "")
        asked = PromptMessage(role="user", content=f"Call {tool.name} with {name} = {word}")
        request = replace(self._request, messages=(asked,), tools=(tool,), max_tokens=MAX_CALL_TOKENS, temperature=0)
        trial = ToolCallFallback(self._provider, request, replace(self.facts, call_form="unknown"), may_probe=False)
        parser = trial.create_parser()
        try:
            async with aclosing(trial.request_answer(parser)) as pieces:
                async for _ in pieces:
                    pass
        except ModelError:
            return self.facts
        self.advice = trial.advice or self.advice
        known = self.facts if trial.facts.takes_tools else replace(self.facts, takes_tools=False, result_form="user")
        if not any(word in str(call.arguments) for call in parser.calls):
            return known
        if parser.native or parser.written is None:
            return replace(known, call_form="native")
        known = replace(known, call_form="text", written_form=parser.written.form, result_form="user")
        if not known.takes_tools or known.written_form == "fence":  # No template asks for fences.
            return known
        self.advice = find_remedy(await identify_server(self._provider), "parser")
        return replace(known, faults=tuple(dict.fromkeys((*known.faults, "parser"))))

    def _render_request(self) -> ChatRequest:
        messages, tools = format_request(self._request.messages, self._request.tools, self.facts)
        return replace(self._request, messages=messages, tools=tools)

    def create_parser(self) -> AnswerParser:
        reads = self.facts.call_form == "text"
        template = self.may_probe and self.facts.takes_tools  # The template may ask for another form.
        forms = (self.facts.written_form,) if reads and not template else ALL_WRITTEN_FORMS
        looks = self._request.tools and (reads or self.facts.call_form == "unknown")
        return AnswerParser(self._request.tools, forms if looks else ())

    async def request_answer(
        self, parser: AnswerParser, request: ChatRequest | None = None
    ) -> AsyncGenerator[AnyPiece, None]:
        """Send `request`, or the standard request without one. The outcome is in `parser`."""
        request, answered = request or self._render_request(), False
        while not answered:
            try:
                async with aclosing(parser.parse_stream(stream_pieces(self._provider, request, self.facts))) as pieces:
                    async for piece in pieces:
                        yield piece
                answered = True
            except ToolsUnsupportedError as error:
                if not request.tools:
                    raise
                self.advice = error.action
                self.facts = replace(self.facts, takes_tools=False, call_form="text", result_form="user")
                parser.forms = (self.facts.written_form,)
                request = self._render_request()
        self.facts = parser.watch.update_facts(self.facts)
        self._count_usage(parser.finish.usage)

    async def _retry_call(self, parser: AnswerParser) -> tuple[list[CallPiece], str]:
        """Send one hint about the mistake. Return the calls, and the text to show if there are none."""
        text, second = parser.text.held, self.create_parser()
        pieces = [piece async for piece in self.request_answer(second, self._build_retry_request(parser))]
        parser.finish = second.finish
        if second.mistake:
            return [], text
        words = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
        return second.calls, f"{text.rstrip()}\n\n{words}" if words else text  # The first text may have been an answer.

    def _build_retry_request(self, parser: AnswerParser) -> ChatRequest:
        request = self._render_request()
        how = explain_calling(self._request.tools, self.facts.written_form)
        words = f"That was no tool call: {parser.mistake} {how}\nOr answer in words."
        said = PromptMessage(role="assistant", content=parser.text.shown + parser.text.held)
        return replace(request, messages=(*request.messages, said, PromptMessage(role="user", content=words)))

    def _count_usage(self, usage: Usage) -> None:
        """Count prompt tokens of the first request, and add up completion tokens."""
        if not self._usage.prompt_tokens:
            self.counted = self.facts
        self._usage = Usage(
            prompt_tokens=self._usage.prompt_tokens or usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens + usage.completion_tokens,
            reused_tokens=self._usage.reused_tokens or usage.reused_tokens,
        )
