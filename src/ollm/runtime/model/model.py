"""The model a conversation talks to: a provider, a model's name, the window chosen for the session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec

from ollm.config.settings import TokenPrice
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, OllmError
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, ChatRequest, ProgressPiece, Provider, TextPiece
from ollm.runtime.model.pictures import RefusedPictures
from ollm.runtime.model.reading_time import ReadingTime
from ollm.runtime.model.request_format import format_request
from ollm.runtime.model.tool_call_fallback import ToolCallFallback

WRITTEN_CALL_TEMPERATURE = (
    0.2  # temperature for a model that writes its calls: it is small, and a slip in them costs a step
)


class Model:
    """Messages in, pieces out. The window stays fixed: another one would make a server load the model again."""

    def __init__(self, provider: Provider, name: str, window: int, facts: ModelFacts, *, why: str = "") -> None:
        self.provider = provider
        self.name = name
        self.window = window
        self.said_window = window  # by the settings or the server, before it was learnt that less is served
        self.facts = self.counted = facts  # `counted`: by what the last request was sent
        self._stumbles = 0
        self._reading = ReadingTime()
        self.pictures = RefusedPictures()
        self.why = why  # why this server, model and window
        self.price = TokenPrice()
        self.advice = ""  # how the server would take tools, when it refused them

    def compute_cost(self, usage: Usage) -> float:
        """What these tokens cost, by the price in the settings; 0 without one."""
        price, reused = self.price, min(usage.reused_tokens, usage.prompt_tokens)
        again = price.prompt if price.reused is None else price.reused
        read = (usage.prompt_tokens - reused) * price.prompt + reused * again
        return (read + usage.completion_tokens * price.completion) / 1e6

    def set_served_window(self, window: int) -> None:
        """The server serves less than it said, or than it is set to."""
        self.facts = msgspec.structs.replace(self.facts, served_window=window, said_window=self.said_window)

    def set_token_factor(self, factor: float, samples: int) -> None:
        """Tokens are counted better now."""
        self.facts = msgspec.structs.replace(self.facts, token_factor=factor, token_samples=samples)

    async def supports_images(self) -> bool:
        """Whether it takes pictures, as its server says; False when that does not say."""
        try:
            return (await self.provider.describe(self.name)).vision
        except OllmError:
            return False

    async def stream(
        self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...], max_tokens: int | None
    ) -> AsyncGenerator[AnyPiece, None]:
        """Text as it comes, calls in whatever form the model makes them, and one end. A request that is refused for its
        pictures is sent again without them."""
        refused = True
        while refused:
            messages, answered, refused = self.pictures.leave_out(messages), False, False
            try:
                async with aclosing(self._stream_once(messages, tools, max_tokens)) as pieces:
                    async for piece in pieces:
                        answered = answered or not isinstance(piece, ProgressPiece)
                        yield piece
            except ModelError as error:
                if answered or not self.pictures.learn_refusal(error, messages):
                    raise
                refused = True

    async def _stream_once(
        self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...], max_tokens: int | None
    ) -> AsyncGenerator[AnyPiece, None]:
        request = ChatRequest(
            model=self.name,
            messages=messages,
            window=self.window,
            tools=tools,
            max_tokens=max_tokens,
            temperature=WRITTEN_CALL_TEMPERATURE if tools and self.facts.call_form in ("text", "constrained") else None,
        )
        if expected := self._reading.estimate(request, self.facts):
            yield expected
        if tools and self.facts.call_form == "blocks":
            async with aclosing(self._stream_blocks(request)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        fallback = ToolCallFallback(self.provider, request, self.facts, self._stumbles)
        try:
            async with aclosing(fallback.stream_answer() if tools else self.provider.stream(request)) as pieces:
                async for piece in pieces:
                    yield self._add_time_left(piece) if isinstance(piece, ProgressPiece) else piece
        finally:
            if tools:
                self.facts, self.counted, self._stumbles = fallback.facts, fallback.counted, fallback.stumbles
                self.advice = fallback.advice or self.advice

    async def _stream_blocks(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        from ollm.runtime.model.block_answer import BlockAnswer

        answer = BlockAnswer(self.provider, request, self.facts)
        try:
            async with aclosing(answer.stream_answer()) as pieces:
                async for piece in pieces:
                    yield self._add_time_left(piece) if isinstance(piece, ProgressPiece) else piece
        finally:
            self.facts, self.counted = answer.facts, answer.counted

    def _add_time_left(self, piece: ProgressPiece) -> ProgressPiece:
        """How long the rest will take, when it is known how fast this model reads."""
        speed, left = self.facts.prefill_per_second, piece.total - piece.processed
        return msgspec.structs.replace(piece, seconds_left=round(left / speed, 1)) if speed and left > 0 else piece

    async def count_tokens(self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...]) -> int | None:
        """Exact tokens of the last request, where the server can say; a failure to say is no failure of the turn."""
        messages, tools = format_request(self.pictures.leave_out(messages), tools, self.counted)
        request = ChatRequest(model=self.name, messages=messages, window=self.window, tools=tools)
        try:
            return await self.provider.count_prompt(request)
        except OllmError:
            return None

    async def summarise_aside(
        self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...], max_tokens: int
    ) -> AsyncIterator[str]:
        """The text of an answer to the conversation's own messages, sent as its last request was: what a server has
        read of that stays. Nothing is learnt from it."""
        messages, tools = format_request(self.pictures.leave_out(messages), tools, self.counted)
        request = ChatRequest(
            model=self.name, messages=messages, window=self.window, tools=tools, max_tokens=max_tokens
        )
        async with aclosing(self.provider.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextPiece):
                    yield piece.text

    async def summarise(self, messages: tuple[PromptMessage, ...], max_tokens: int) -> AsyncIterator[str]:
        """The text of an answer to `messages`, without tools, as it comes."""
        async with aclosing(self.stream(messages, (), max_tokens)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextPiece):
                    yield piece.text
