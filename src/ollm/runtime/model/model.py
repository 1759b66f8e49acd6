"""The model of a conversation: a provider, a model name, the session's window, and the requests its server
refuses or answers slowly."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.config.settings import ModelSettings, TokenPrice
from ollm.domain.clock import monotonic
from ollm.domain.context import DEFAULT_REPLAY, ReplayThinking, Usage
from ollm.domain.errors import ModelError, OllmError, RequestRefusedError
from ollm.domain.events import MIN_PRICED_SECONDS
from ollm.domain.lazy import compile_late
from ollm.domain.messages import JsonObject, PromptMessage, count_same_objects
from ollm.domain.model_facts import ModelFacts
from ollm.domain.text import format_seconds
from ollm.domain.tools import ToolSchema
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    ModelInfo,
    ProgressPiece,
    Provider,
    TextPiece,
    ThinkingPiece,
    name_model,
)
from ollm.runtime.model.tool_call_fallback import (
    Messages,
    ToolCallFallback,
    ToolSchemas,
    format_request,
    stream_pieces,
)
from ollm.services.token_counting import TokenCounter

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.runtime.model.block_answer import BlockAnswer
    from ollm.runtime.model.server_queue import ServerQueue

SMALL_MODEL_TEMPERATURE = 0.2  # A higher temperature leads to malformed calls, and to nonsense from tiny models.
MIN_REPORTED_SECONDS = 2.0
MIN_RATE_SECONDS = 1.0  # The request's own speed counts only after this time.
NOT_COUNTED = -1
PROVED = 2  # This many refusals prove that thinking is their reason.
PICTURE_WORDS = compile_late(r"image|multi-?modal|mmproj|vision|picture", re.IGNORECASE)


class Model:
    """Sends messages and yields pieces. The window stays fixed: changing it would make a server reload the model."""

    def __init__(self, provider: Provider, name: str, window: int, facts: ModelFacts, *, why: str = "") -> None:
        self.provider = provider
        self.looked = False  # Set once this process has looked at the chat template.
        self.answered = False  # Set once the server has begun its first answer.
        self.name = name
        self.window = window
        self.said_window = window  # The settings or the server named this window; the server may serve less.
        self.facts = self.counted = facts  # The last request was sent with the `counted` facts.
        self.known = facts  # These facts are saved.
        self._may_probe = True  # An unknown model may call in text once.
        self.reading = ReadingTime()
        self.pictures = RefusedPictures()
        self._thinking_refusals = self._doubts = 0  # They count signs that the server refuses thinking.
        self._drops_ids = False
        self.why = why  # Explains the choice of server, model and window.
        self.price = TokenPrice()
        self.queue: ServerQueue | None = None  # Only a server that runs few requests at a time has a queue.
        self.settings: ModelSettings | None = None  # The user's settings apply to every request.
        self.is_small = False  # A small model is shown files, even if it calls natively.
        self.advice = ""  # Explains how a server that refused tools would take them.

    async def look_at_template(self, tools: ToolSchemas = ()) -> None:
        """Look at the server's chat template between two requests, unless that was done before or `tools` were refused
        now. If it leaves out a part of the conversation, change to a form that it shows."""
        self.looked = True
        info = getattr(self.provider, "described", None) or await describe_model(self.provider, self.name)
        if info is None or getattr(self.provider, "is_silent", False):
            return
        facts, found = self.facts, {"server_mark": info.mark}
        if info.template and (info.mark != facts.server_mark or tools) and not facts.chats_only:
            from ollm.runtime.model.template_checks import TemplateLook

            known = facts.forget_server() if facts.server_mark else facts
            look = TemplateLook(self.provider, self._make_request((), tools, None))
            try:
                found |= (await look.choose_forms(known)).list_changes(facts)
            except OllmError:  # The next process looks again.
                return
        self.facts = replace(facts, **found)

    @property
    def origin(self) -> str:
        """A short hash of server and model, which marks the ids and the thinking that only they understand."""
        return f"{crc32(self.facts.key.encode(errors='replace')):08x}"

    @property
    def replay(self) -> ReplayThinking:
        """How much thinking goes back to the model."""
        wanted = self.settings.replay_thinking if self.settings else None
        return wanted or DEFAULT_REPLAY if self.facts.takes_thinking else "off"

    def join_queue(self, folder: Path, places: int | None) -> None:
        """Take turns with other programs if the server runs only so many requests at a time."""
        if places := places or getattr(self.provider, "slots", 0):
            from ollm.runtime.model.server_queue import ServerQueue

            self.queue = ServerQueue(folder, self.provider.base_url, places)

    async def count_places(self) -> int:
        """Count the requests that the server runs at a time, 1 if that is unknown."""
        if self.queue:
            return self.queue.places
        count = getattr(self.provider, "count_slots", None)
        try:
            return await count(self.name) if count else 1
        except OllmError:
            return 1

    def compute_cost(self, usage: Usage) -> float:
        """Compute the cost of these tokens by the configured price, or 0 if none is set."""
        price, reused = self.price, min(usage.reused_tokens, usage.prompt_tokens)
        again = price.prompt if price.reused is None else price.reused
        read = (usage.prompt_tokens - reused) * price.prompt + reused * again
        return (read + usage.completion_tokens * price.completion) / 1e6

    def take_replacement(self) -> str:
        """Return a notice if the server has another model since the last answer."""
        take = getattr(self.provider, "take_replacement", None)
        if not (other := take() if take else ""):
            return ""
        other = name_model(other)
        return f"The server answers with {other} now, not {name_model(self.name)}: choose it with `/model {other}`."

    async def learn_served_window(self, window: int) -> None:
        """Record that the server serves less than it says at this moment: it may have been restarted with less."""
        try:
            await self.provider.models()
            said = (await self.provider.describe(self.name)).window or self.said_window
        except (OllmError, NotImplementedError):  # An extension's provider need not list models.
            said = self.said_window
        if window < said:
            self.facts = replace(self.facts, served_window=window, said_window=said)

    def describe_reading(self, tokens: int) -> str:
        """Describe how long the model reads this many tokens. Return "" if it is short or the speed is unknown."""
        seconds = tokens / (self.facts.prefill_per_second or tokens + 1)
        return f"reads {tokens:,} tokens, about {format_seconds(seconds)}" if seconds >= MIN_PRICED_SECONDS else ""

    async def supports_images(self) -> bool:
        """Return True if the server reports that the model accepts images. False if it reports nothing."""
        info = await describe_model(self.provider, self.name)
        return info is not None and info.vision

    def stream(
        self,
        messages: Messages,
        tools: ToolSchemas,
        max_tokens: int | None,
        schema: JsonObject | None = None,
    ) -> AsyncGenerator[AnyPiece, None]:
        """Yield text as it comes, calls in any form the model uses, and one finish. A request refused for its images is
        sent again without them. `schema` binds the answer, which calls no tools; a server that refuses it gets the
        request without."""
        pieces = self._stream_now(messages, tools, max_tokens, schema)
        return self.queue.relay(pieces) if self.queue else pieces

    async def _stream_now(
        self, messages: Messages, tools: ToolSchemas, max_tokens: int | None, schema: JsonObject | None
    ) -> AsyncGenerator[AnyPiece, None]:
        """Stream the answer. A refused request is sent again without what was refused."""
        self._doubts, refused = 0, True
        if schema is not None:
            messages, tools = format_request(messages, tools, self.facts)[0], ()
        while refused:
            messages, answered, refused = self._leave_out_refused(messages), False, False
            try:
                async with aclosing(self._stream_answer(messages, tools, max_tokens, schema)) as pieces:
                    async for piece in pieces:
                        answered = answered or not isinstance(piece, ProgressPiece)
                        yield piece
            except ModelError as error:
                bound = schema is not None
                again = None if answered else await self._reduce_refused(error, messages, tools, bound=bound)
                if again is None:
                    raise
                messages, refused, schema = again, True, None
        self._thinking_refusals += self._doubts
        if self._doubts and self._thinking_refusals >= PROVED:
            self.facts = replace(self.facts, takes_thinking=False)

    async def _stream_answer(
        self, messages: Messages, tools: ToolSchemas, max_tokens: int | None, schema: JsonObject | None
    ) -> AsyncGenerator[AnyPiece, None]:
        """Stream the answer to one request, with the time that is left, and learn from it. Without tools there are no
        calls."""
        request = replace(self._make_request(messages, tools, max_tokens), response_schema=schema)
        expected = self.reading.estimate(request, self.facts)
        if expected and getattr(self.provider, "kind", None) != "llama.cpp":  # That server reports it itself.
            yield expected
        answer = self._create_answer(request)
        try:
            async with aclosing(answer.stream_answer()) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ProgressPiece):
                        yield self.reading.add_time_left(piece, self.facts)
                    elif tools or not isinstance(piece, CallPiece):
                        self.answered = True
                        self.reading.observe_answer(piece)
                        yield piece
        finally:
            self.facts, self.advice = answer.facts, answer.advice or self.advice
            if tools:
                self.counted, self._may_probe = answer.counted, answer.may_probe

    async def _reduce_refused(
        self, error: ModelError, messages: Messages, tools: ToolSchemas, *, bound: bool
    ) -> Messages | None:
        """Return the messages to send again without what was refused, or None if there is no such thing."""
        refused = isinstance(error, RequestRefusedError)
        if (bound and refused) or self.pictures.learn_refusal(error, messages):
            return messages
        if refused and not self.looked:
            before = self.facts
            await self.look_at_template(tools)
            if (self.facts.call_form, self.facts.system_form) != (before.call_form, before.system_form):
                return messages
        bare = tuple(message.without_thinking() for message in messages)
        fields = {message.thinking_field.replace("text", "<think>") for message in messages if message.thinking}
        names_it = any(field in error.message for field in fields)
        if bare != messages and (refused or (names_it and error.status == 500)):
            # An error that does not name the field may have another reason: only the next one proves it.
            self._doubts = PROVED if names_it else int(error.status != 413)
            return bare
        self._drops_ids = self._drops_ids or refused
        other = self._leave_out_refused(messages)
        return other if refused and other != messages else None

    def _leave_out_refused(self, messages: Messages) -> Messages:
        """Leave out the pictures that the server refused, and its own ids of calls if its template refuses them."""
        messages = self.pictures.leave_out(messages)
        if not self._drops_ids:
            return messages
        return tuple(message.without_ids() for message in messages)

    def _make_request(self, messages: Messages, tools: ToolSchemas, max_tokens: int | None) -> ChatRequest:
        form = self.facts.call_form
        slips = self.facts.chats_only if form == "none" else tools and form == "text"
        temperature = SMALL_MODEL_TEMPERATURE if slips else None
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
        if self.facts.call_form != "blocks" or not request.tools:
            return ToolCallFallback(self.provider, request, self.facts, may_probe=self._may_probe)
        from ollm.runtime.model.block_answer import BlockAnswer

        return BlockAnswer(self.provider, request, self.facts)

    def format_like_last(self, messages: Messages, tools: ToolSchemas, max_tokens: int | None = None) -> ChatRequest:
        """Build a request in the form in which the last one was sent."""
        return self._make_request(
            *format_request(self._leave_out_refused(messages), tools, self.counted), max_tokens=max_tokens
        )

    async def count_tokens(self, messages: Messages, tools: ToolSchemas) -> int | None:
        """Count the exact tokens of the last request. Return None if the server cannot, without failing the turn."""
        try:
            return await self.provider.count_prompt(self.format_like_last(messages, tools))
        except OllmError:
            return None

    def summarise_aside(self, messages: Messages, tools: ToolSchemas, max_tokens: int) -> AsyncIterator[str]:
        """Yield the answer to the conversation's own messages, sent like the last request so that the server's cache
        stays valid. Records no facts."""
        pieces = stream_pieces(self.provider, self.format_like_last(messages, tools, max_tokens), self.facts)
        return iterate_text(self.queue.relay(pieces) if self.queue else pieces)

    def summarise(self, messages: Messages, max_tokens: int) -> AsyncIterator[str]:
        """Yield the text of an answer to `messages`, without tools, as it comes."""
        return iterate_text(self.stream(messages, (), max_tokens))


async def describe_model(provider: Provider, name: str) -> ModelInfo | None:
    """Ask the server about a model. Return None if it does not answer; an extension's provider need not list models."""
    try:
        return await provider.describe(name)
    except (OllmError, NotImplementedError):
        return None


async def iterate_text(stream: AsyncGenerator[AnyPiece, None]) -> AsyncIterator[str]:
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, TextPiece):
                yield piece.text


SentPrompt = tuple[int, tuple[ToolSchema, ...], tuple[PromptMessage, ...]]  # Window, tools and messages.


class ReadingTime:
    """Estimates the time to read a prompt. Remembers the last answered request, which the server has read."""

    def __init__(self) -> None:
        self._sending: SentPrompt = (0, (), ())
        self._read: SentPrompt = (0, (), ())
        self._first: tuple[float, int] | None = None  # Holds the time and amount of the first progress.
        self.reuse_after_restore: int | None = None  # The next answer reports how many tokens the server reused.
        self._thought = False  # Templates may leave out the last answer's thoughts, which changes the prefix.

    def estimate(self, request: ChatRequest, facts: ModelFacts) -> ProgressPiece | None:
        """Estimate the tokens to read and the seconds. Return None if it is short or the speed is unknown."""
        messages, tools = format_request(request.messages, request.tools, facts)
        self._sending, self._first = (request.window, tools, messages), None
        fresh = messages if facts.reuses_prefix is False else self._find_unread()
        if not facts.prefill_per_second:
            return None
        counter = TokenCounter(facts.token_factor, facts.token_samples)
        tokens = counter.count_messages(fresh)
        if len(fresh) == len(messages):
            tokens += counter.count_schemas(tools)
        seconds = round(tokens / facts.prefill_per_second, 1)
        return ProgressPiece(total=tokens, seconds_left=seconds) if seconds >= MIN_REPORTED_SECONDS else None

    def observe_answer(self, piece: AnyPiece) -> None:
        """Note that the server answers: it has read the whole prompt."""
        self._thought = isinstance(piece, ThinkingPiece) or (self._thought and self._read is self._sending)
        self._read = self._sending
        if self.reuse_after_restore == NOT_COUNTED and isinstance(piece, FinishPiece):
            self.reuse_after_restore = piece.usage.reused_tokens if piece.counts_reuse else None

    @property
    def is_answered(self) -> bool:
        return self._read is self._sending or not self._sending[2]

    def note_read(self, request: ChatRequest) -> None:
        self._read = (request.window, request.tools, request.messages)
        self.reuse_after_restore = NOT_COUNTED

    def add_time_left(self, piece: ProgressPiece, facts: ModelFacts) -> ProgressPiece:
        """Add the time left by this request's own speed, or by the one measured before."""
        if piece.stage != "reading":
            return piece
        now, left, speed = monotonic(), piece.total - piece.processed, facts.prefill_per_second
        began, at = self._first = self._first or (now, piece.processed)
        if piece.processed > at and now - began > MIN_RATE_SECONDS:
            speed = (piece.processed - at) / (now - began)
        return replace(piece, seconds_left=round(left / speed, 1)) if speed and left > 0 else piece

    def _find_unread(self) -> Messages:
        """Return the messages from the first difference on, without the server's own last answer."""
        *form, messages = self._sending
        *read_form, read = self._read
        if form != read_form:
            return messages
        same = count_same_objects(messages, read)
        pairs = enumerate(zip(messages[same:], read[same:], strict=False), same)
        at = next((at for at, (one, other) in pairs if one != other), min(len(messages), len(read)))
        answered = 0 < len(read) == at < len(messages) and messages[at].role == "assistant" and not self._thought
        return messages[at + answered :]


class RefusedPictures:
    """Omits only images a server refused: it may accept others, or be restarted with support for them."""

    def __init__(self) -> None:
        self._refused: set[int] = set()
        self._told = False

    def learn_refusal(self, error: ModelError, messages: Messages) -> bool:
        """Return True if the request has images and may have been refused for them, so it can be sent without."""
        found = {hash(image.data) for message in messages for image in message.images} - self._refused
        refused = isinstance(error, RequestRefusedError) or PICTURE_WORDS.search(error.message)
        if not found or not refused:
            return False
        self._refused |= found
        return True

    def leave_out(self, messages: Messages) -> Messages:
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
