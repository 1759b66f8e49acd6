"""The model of a conversation: a provider, a model name, the session's window, and the requests its server
refuses or answers slowly."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.config.settings import ModelSettings, TokenPrice
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, OllmError, RequestRefusedError
from ollm.domain.lazy import compile_late
from ollm.domain.messages import JsonObject, PromptMessage, count_same_objects
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import AnyPiece, ChatRequest, ProgressPiece, Provider, TextPiece
from ollm.runtime.model.tool_call_fallback import ToolCallFallback, format_request
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from ollm.runtime.model.block_answer import BlockAnswer

SMALL_MODEL_TEMPERATURE = 0.2  # a slip in a written call costs a step, and a tiny model talks nonsense when it is free
MIN_REPORTED_SECONDS = 2.0  # seconds
PICTURE_WORDS = compile_late(r"image|multi-?modal|mmproj|vision|picture", re.IGNORECASE)


class Model:
    """Sends messages and yields pieces. The window stays fixed: changing it would make a server reload the model."""

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
        self.settings: ModelSettings | None = None  # the user's, for every request
        self.is_small = False  # it is shown files with a request, though it calls natively
        self.advice = ""  # how the server would take tools, when it refused them

    def compute_cost(self, usage: Usage) -> float:
        """Compute the cost of these tokens by the configured price, or 0 if none is set."""
        price, reused = self.price, min(usage.reused_tokens, usage.prompt_tokens)
        again = price.prompt if price.reused is None else price.reused
        read = (usage.prompt_tokens - reused) * price.prompt + reused * again
        return (read + usage.completion_tokens * price.completion) / 1e6

    def set_served_window(self, window: int) -> None:
        """Record that the server's window is smaller than reported or configured."""
        self.facts = replace(self.facts, served_window=window, said_window=self.said_window)

    def set_token_factor(self, factor: float, samples: int) -> None:
        """Update the token counting factor."""
        self.facts = replace(self.facts, token_factor=factor, token_samples=samples)

    async def supports_images(self) -> bool:
        """Return True if the server reports that the model accepts images. False if it reports nothing."""
        try:
            return (await self.provider.describe(self.name)).vision
        except OllmError:
            return False

    async def stream(
        self,
        messages: tuple[PromptMessage, ...],
        tools: tuple[ToolSchema, ...],
        max_tokens: int | None,
        temperature: float | None = None,
        schema: JsonObject | None = None,
    ) -> AsyncGenerator[AnyPiece, None]:
        """Yield text as it comes, calls in any form the model uses, and one finish. A request refused for its images is
        sent again without them. `temperature` applies to a model that writes blocks. `schema` binds the answer, which
        calls no tools; a server that refuses it gets the request without."""
        refused = True
        if schema is not None:
            messages, tools = format_request(messages, tools, self.facts)[0], ()
        while refused:
            messages, answered, refused = self.pictures.leave_out(messages), False, False
            request = self._build_request(messages, tools, max_tokens, temperature)
            if schema is not None:
                request = replace(request, response_schema=schema)
            if expected := self._reading.estimate(request, self.facts):
                yield expected
            answer = self._create_answer(request) if tools else None
            try:
                async with aclosing(answer.stream_answer() if answer else self.provider.stream(request)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, ProgressPiece):
                            yield self._add_time_left(piece)
                        else:
                            answered = True
                            yield piece
            except ModelError as error:
                unbound = schema is not None and isinstance(error, RequestRefusedError)
                if answered or not (unbound or self.pictures.learn_refusal(error, messages)):
                    raise
                refused, schema = True, None
            finally:
                if answer:
                    self.facts, self.counted, self._stumbles = answer.facts, answer.counted, answer.stumbles
                    self.advice = answer.advice or self.advice

    def _build_request(
        self,
        messages: tuple[PromptMessage, ...],
        tools: tuple[ToolSchema, ...],
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatRequest:
        writes = bool(tools) and self.facts.call_form in ("text", "constrained")
        if not (tools and self.facts.call_form == "blocks"):
            temperature = SMALL_MODEL_TEMPERATURE if self.facts.chats_only or writes else None
        if self.settings and self.settings.temperature is not None:
            temperature = self.settings.temperature
        return ChatRequest(
            model=self.name,
            messages=messages,
            window=self.window,
            tools=tools,
            max_tokens=max_tokens,
            temperature=temperature,
            settings=self.settings,
        )

    def _create_answer(self, request: ChatRequest) -> ToolCallFallback | BlockAnswer:
        if self.facts.call_form != "blocks":
            return ToolCallFallback(self.provider, request, self.facts, self._stumbles)
        from ollm.runtime.model.block_answer import BlockAnswer

        return BlockAnswer(self.provider, request, self.facts, self._stumbles)

    def _add_time_left(self, piece: ProgressPiece) -> ProgressPiece:
        """Add the time left, if the model's reading speed is known."""
        speed, left = self.facts.prefill_per_second, piece.total - piece.processed
        return replace(piece, seconds_left=round(left / speed, 1)) if speed and left > 0 else piece

    async def count_tokens(self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...]) -> int | None:
        """Count the exact tokens of the last request. Return None if the server cannot, without failing the turn."""
        messages, tools = format_request(self.pictures.leave_out(messages), tools, self.counted)
        request = ChatRequest(
            model=self.name, messages=messages, window=self.window, tools=tools, settings=self.settings
        )
        try:
            return await self.provider.count_prompt(request)
        except OllmError:
            return None

    def summarise_aside(
        self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...], max_tokens: int
    ) -> AsyncIterator[str]:
        """Yield the answer to the conversation's own messages, sent like the last request so that the server's cache
        stays valid. Records no facts."""
        messages, tools = format_request(self.pictures.leave_out(messages), tools, self.counted)
        request = ChatRequest(
            model=self.name,
            messages=messages,
            window=self.window,
            tools=tools,
            max_tokens=max_tokens,
            settings=self.settings,
        )
        return iterate_text(self.provider.stream(request))

    def summarise(self, messages: tuple[PromptMessage, ...], max_tokens: int) -> AsyncIterator[str]:
        """Yield the text of an answer to `messages`, without tools, as it comes."""
        return iterate_text(self.stream(messages, (), max_tokens))


async def iterate_text(stream: AsyncGenerator[AnyPiece, None]) -> AsyncIterator[str]:
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, TextPiece):
                yield piece.text


class ReadingTime:
    """Estimates the time to read a prompt. Remembers the last request, which the server has already read."""

    def __init__(self) -> None:
        self._sent: tuple[PromptMessage, ...] = ()

    def estimate(self, request: ChatRequest, facts: ModelFacts) -> ProgressPiece | None:
        """Estimate the tokens to read and the seconds. Return None if it is short or the speed is unknown."""
        messages, tools = format_request(request.messages, request.tools, facts)
        fresh = self._find_unread(messages)
        self._sent = messages
        if not facts.prefill_per_second:
            return None
        counter = TokenCounter(facts.token_factor, facts.token_samples)
        tokens = counter.count_messages(fresh)
        if len(fresh) == len(messages):
            tokens += counter.count_schemas(tools)
        seconds = round(tokens / facts.prefill_per_second, 1)
        return ProgressPiece(total=tokens, seconds_left=seconds) if seconds >= MIN_REPORTED_SECONDS else None

    def _find_unread(self, messages: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        """Return the messages from the first difference on."""
        same = count_same_objects(messages, self._sent)
        pairs = enumerate(zip(messages[same:], self._sent[same:], strict=False), same)
        return messages[next((at for at, (one, other) in pairs if one != other), min(len(messages), len(self._sent))) :]


class RefusedPictures:
    """Omits only images a server refused: it may accept others, or be restarted with support for them."""

    def __init__(self) -> None:
        self._refused: set[int] = set()
        self._told = False

    def learn_refusal(self, error: ModelError, messages: tuple[PromptMessage, ...]) -> bool:
        """Return True if the request has images and may have been refused for them, so it can be sent without."""
        found = {hash(image.data) for message in messages for image in message.images} - self._refused
        refused = isinstance(error, RequestRefusedError) or PICTURE_WORDS.search(error.message)
        if not found or not refused:
            return False
        self._refused |= found
        return True

    def leave_out(self, messages: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        """Replace each refused image with a short note."""
        if not self._refused or not any(message.images for message in messages):
            return messages
        return tuple(self._leave_out_of(message) for message in messages)

    def _leave_out_of(self, message: PromptMessage) -> PromptMessage:
        kept = tuple(image for image in message.images if hash(image.data) not in self._refused)
        if not (missing := len(message.images) - len(kept)):
            return message
        word = f"[{missing} {'picture' if missing == 1 else 'pictures'} left out: the model server refused it]"
        return replace(message, images=kept, content=f"{message.content}\n{word}".strip())

    def take_news(self) -> str:
        """Return a notice for the user, once per conversation."""
        if not self._refused or self._told:
            return ""
        self._told = True
        return "the server refused a picture, so the model is only told that there was one."
