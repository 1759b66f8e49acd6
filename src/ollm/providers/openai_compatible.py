"""Servers with the OpenAI chat API (llama.cpp, vLLM, LM Studio and others), including their extensions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import monotonic
from ollm.domain.context import Usage
from ollm.domain.errors import (
    ModelError,
    ModelTimeoutError,
    OllmError,
    PromptTooLongError,
    ToolsUnsupportedError,
    UnknownModelError,
)
from ollm.domain.messages import JsonObject, PromptMessage, ThinkingField, count_same_objects, encode_calls
from ollm.providers.base import (
    AnyPiece,
    CallPiece,
    ChatRequest,
    FinishPiece,
    FinishReason,
    ModelInfo,
    PieceStream,
    ProgressPiece,
    TextPiece,
    ThinkingPiece,
    WireIds,
    as_entries,
    as_mapping,
    as_text,
    as_thinking,
    build_functions,
    join_details,
    merge_user_messages,
    parse_arguments,
    relay,
    write_thinking,
)
from ollm.providers.exchange import Exchange, ServerProvider
from ollm.providers.server_errors import ModelLoadingError, as_int, lists_no_models, make_unknown_model_error
from ollm.providers.server_kind import (
    LLAMA_CPP,
    LM_STUDIO,
    SGLANG,
    VLLM,
    Kind,
    add_server_details,
    add_window_of_page,
    choose_window_page,
    detect_kind,
    parse_model_infos,
)
from ollm.system.http import Response, iter_server_events

if TYPE_CHECKING:
    from ollm.providers.llama_slots import LlamaSlots

Chunk = dict[str, Any]
REFUSAL_STATUSES = (400, 404, 422)
PAGE_TIMEOUT_SECONDS = 2.0

# For llama.cpp: inside a string a schema allows anything, and small models fill it with line breaks for ever. Only what
# was just written counts, and only long repetitions do, so that a text copied from further up is not held against it.
REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
DONE_MARK = "[DONE]"
THINKING_FIELDS: tuple[ThinkingField, ...] = ("reasoning_content", "reasoning")
MAX_CALL_CHARACTERS = 8 << 20  # what one answer may bring of calls
MAX_CALLS = 1_000
MAX_BATCHED_REQUESTS = 256  # vLLM's default for --max-num-seqs


class OpenAICompatible(ServerProvider):
    """One server. Its kind is detected once, from its list of models."""

    def __init__(self, exchange: Exchange, api: str = "/v1", name: str = "openai") -> None:
        super().__init__(exchange, exchange.url + api)
        self.name = name
        self.slots = 0  # requests at a time, as far as the server said
        self.described: ModelInfo | None = None  # what the server last said of its model
        self._api = api
        self._listing: Any = None
        self._encoded = MessageEncoder()
        self.kind: Kind | None = None  # None: not connected yet
        self._slots: LlamaSlots | None = None

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        if self.kind is None and request.settings and request.settings.differs_by_server:
            return relay(self._stream_when_known(request))
        return self._stream_chat(request)

    async def _stream_when_known(self, request: ChatRequest) -> AsyncGenerator[AnyPiece | PieceStream, None]:
        """Ask for the kind of server first: each takes thinking and penalties as other fields."""
        await self._get_listing()
        yield self._stream_chat(request)

    def _stream_chat(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        body = build_chat_body(request, self._encoded, self.kind or "other")
        if self.kind == LLAMA_CPP:
            body |= {"return_progress": True, "cache_prompt": True}
        if self._slots:
            body |= self._slots.take_next_slot()

        async def list_models(error: OllmError) -> OllmError | None:
            if not may_name_model(error):
                return None
            names = [info.name for info in parse_model_infos(await self._get_listing(anew=True))]
            if isinstance(error, UnknownModelError):
                return make_unknown_model_error(self.base_url, request.model, names) if names else None
            unknown = bool(names) and request.model not in names and self.kind != LLAMA_CPP
            return make_unknown_model_error(self.base_url, request.model, names) if unknown else None

        return relay(self._stream_when_loaded(body), list_models)

    async def models(self) -> list[ModelInfo]:
        self._remember(await self._exchange.request_json("GET", f"{self._api}/models"))
        return parse_model_infos(self._listing)

    async def describe(self, model: str) -> ModelInfo:
        """Describe a model. A server without a model list accepts any name."""
        infos = {info.name: info for info in parse_model_infos(await self._get_listing())}
        if len(infos) == 1 and self.kind == LLAMA_CPP:
            info = next(iter(infos.values()))  # it serves one model under any name
        elif infos and model not in infos:
            raise make_unknown_model_error(self.base_url, model, infos)
        else:
            info = infos.get(model, ModelInfo(name=model))
        page = {LLAMA_CPP: "/props", LM_STUDIO: "/api/v0/models"}.get(self.kind or "other")
        if page is None:
            return info if info.window else await self._ask_other_pages(info)
        details = await self._exchange.try_request_json("GET", page)
        self.slots = as_int(as_mapping(details).get("total_slots"))
        self.described = add_server_details(info, self.kind or "other", details)
        return self.described

    async def count_slots(self, model: str) -> int:
        """Count the requests that the server runs at a time, 1 if it does not say. vLLM and SGLang batch them all."""
        await self._get_listing()
        if self.kind == LLAMA_CPP and not self.slots:
            await self.describe(model)
        return MAX_BATCHED_REQUESTS if self.kind in (VLLM, SGLANG) else max(self.slots, 1)

    async def _ask_other_pages(self, info: ModelInfo) -> ModelInfo:
        page = choose_window_page(self._listing, info.name)
        if page is None:
            return info
        return add_window_of_page(
            info, await self._exchange.try_request_json("GET", page, timeout=PAGE_TIMEOUT_SECONDS)
        )

    async def count_tokens(self, model: str, text: str) -> int | None:
        await self._get_listing()
        if self.kind == LLAMA_CPP:
            return await self._request_token_count({"content": text, "add_special": False})
        if self.kind == VLLM:
            return await self._request_token_count({"model": model, "prompt": text, "add_special_tokens": False})
        return None

    async def count_prompt(self, request: ChatRequest) -> int | None:
        await self._get_listing()
        if self.kind == VLLM:
            return await self._request_token_count(_select_template_fields(request, VLLM))
        try:
            rendered = await self.render(request)
        except ModelError:
            rendered = None
        if rendered is None:
            return None
        return await self._request_token_count({"content": rendered, "add_special": True, "parse_special": True})

    async def render(self, request: ChatRequest) -> str | None:
        await self._get_listing()
        if self.kind != LLAMA_CPP:
            return None
        body = _select_template_fields(request, LLAMA_CPP)
        try:
            found = as_mapping(await self._exchange.request_json("POST", "/apply-template", body))
        except ModelError as error:
            if lists_no_models(error):  # an older server without this page
                return None
            raise
        return as_text(found.get("prompt")) or None

    async def is_idle(self) -> bool:
        """Return True if no slot of a llama.cpp server has work, or False if that is unknown."""
        if self.kind != LLAMA_CPP or (opened := await self.open_slots()) is None:
            return False
        slots = await opened.list_slots()
        return bool(slots) and not any(slot.busy for slot in slots)

    async def open_slots(self) -> LlamaSlots | None:
        """Open the slots of a llama.cpp server. Returns None for any other."""
        await self._get_listing()
        if self._slots is None and self.kind == LLAMA_CPP:
            from ollm.providers.llama_slots import LlamaSlots

            self._slots = LlamaSlots(self._exchange)
        return self._slots

    async def _stream_when_loaded(self, body: JsonObject) -> AsyncGenerator[AnyPiece, None]:
        """Stream once the model is loaded. Until then llama.cpp answers 503, for minutes if the model is large."""
        begin = monotonic()
        while True:
            try:
                async with aclosing(self._stream_pieces(body)) as pieces:
                    async for piece in pieces:
                        yield piece
                    return
            except ModelLoadingError as error:
                reason = error
            yield ProgressPiece(stage="loading")
            if not await self._exchange.wait_for_loading(begin):
                raise ModelTimeoutError(reason.message, action="Raise provider.timeouts.firstToken.") from reason

    async def _stream_pieces(self, body: JsonObject) -> AsyncGenerator[AnyPiece, None]:
        assembly, path = StreamAssembler(), f"{self._api}/chat/completions"
        done = heard = False
        async with self._exchange.stream(path, body) as response, aclosing(_iter_events(response)) as events:
            async for data in events:
                heard = True
                if done := data.strip() == DONE_MARK:
                    break
                try:
                    pieces = assembly.add_chunk(self._decode_chunk(data))
                except ModelError:
                    if done := assembly.calls_complete:  # llama.cpp misses the end of a call that it gave whole
                        break
                    raise
                if assembly.grew:
                    response.timer.reset(begun=assembly.writing)
                for piece in pieces:
                    yield piece
        if not heard:
            raise ModelError(
                f"The model server at {self.base_url} sent no answer.",
                action="Check that provider.baseUrl is the address of its API, and its log.",
            )
        if not done and not assembly.is_complete:
            raise self._make_broken_error()
        for piece in assembly.finish():
            yield piece

    async def _get_listing(self, *, anew: bool = False) -> Any:
        """Get the server's model list, waiting while it loads a model. Returns None if it has no list."""
        if self.kind is not None and not anew:
            return self._listing
        begin, loading = monotonic(), True
        while loading:
            try:
                self._remember(await self._exchange.request_json("GET", f"{self._api}/models"))
                loading = False
            except ModelLoadingError:
                loading = await self._exchange.wait_for_loading(begin)
            except ModelError:
                self._remember(None)
                loading = False
        return self._listing

    def _remember(self, listing: Any) -> None:
        self._listing, self.kind = listing, detect_kind(listing)

    async def _request_token_count(self, body: JsonObject) -> int | None:
        found = as_mapping(await self._exchange.try_request_json("POST", "/tokenize", body))
        tokens = found.get("tokens")
        return len(tokens) if isinstance(tokens, list) else None


def may_name_model(error: OllmError) -> bool:
    """Return True if a refusal may concern the model's name, however it is worded."""
    if isinstance(error, PromptTooLongError | ToolsUnsupportedError) or not isinstance(error, ModelError):
        return False
    return isinstance(error, UnknownModelError) or error.status in REFUSAL_STATUSES


def _select_template_fields(request: ChatRequest, kind: Kind) -> JsonObject:
    body = build_chat_body(request, None, kind)
    return {key: body[key] for key in ("model", "messages", "tools", "chat_template_kwargs") if key in body}


def _iter_events(response: Response) -> AsyncGenerator[str, None]:
    """Iterate over the data of the events. A document that is not streamed counts as one event."""
    whole = "application/json" in response.headers.get("content-type", "")
    return _read_document(response) if whole else iter_server_events(response.iter_chunks())


async def _read_document(response: Response) -> AsyncGenerator[str, None]:
    yield b"".join([chunk async for chunk in response.iter_chunks()]).decode("utf-8", "replace")


class MessageEncoder:
    """An encoder of messages to JSON that reuses the messages of the last request."""

    def __init__(self) -> None:
        self._messages: list[PromptMessage] = []
        self._encoded: list[msgspec.Raw] = []
        self._ids = WireIds()

    def __call__(self, messages: Sequence[PromptMessage]) -> list[msgspec.Raw]:
        same = count_same_objects(self._messages, messages)
        known = dict(zip(map(id, self._messages[same:]), self._encoded[same:], strict=True))
        fresh = [
            known.get(id(message)) or msgspec.Raw(msgspec.json.encode(build_message(message, self._ids)))
            for message in messages[same:]
        ]
        self._messages, self._encoded = list(messages), self._encoded[:same] + fresh
        return self._encoded


def build_chat_body(
    request: ChatRequest,
    encode: Callable[[list[PromptMessage]], Sequence[object]] | None = None,
    kind: Kind = "other",
) -> JsonObject:
    messages = list(request.messages) if request.verbatim else merge_user_messages(request.messages)
    ids = WireIds()
    if request.settings:
        from ollm.providers.request_settings import add_openai_fields, add_thinking_word

        messages = add_thinking_word(messages, request.settings)
    body: JsonObject = {
        "model": request.model,
        "messages": encode(messages) if encode else [build_message(message, ids) for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = build_functions(request.tools)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.response_schema is not None:
        schema = {"name": "answer", "strict": True, "schema": request.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return add_openai_fields(body, request.settings, kind) if request.settings else body


def build_message(message: PromptMessage, ids: WireIds) -> JsonObject:
    body: JsonObject = {"role": message.role, "content": _build_content(message)}
    write_thinking(message, body)
    if message.calls:
        ids.add_calls(message.calls)
        body["tool_calls"] = encode_calls(message.calls, ids.name_call)
    if message.role == "tool" and message.call_id:
        body["tool_call_id"] = ids.name_call(message.call_id)
    return body


def _build_content(message: PromptMessage) -> str | list[JsonObject]:
    if not message.images:
        return message.content
    images: list[JsonObject] = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
        for image in message.images
    ]
    return [{"type": "text", "text": message.content}, *images] if message.content else images


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
        self._usage = Usage()
        self._call_characters = 0
        self.grew = False  # the last chunk brought something
        self._counts_reuse = False
        self._read_seconds = 0.0
        self._truncated = False
        self.writing = False  # the model has begun: text, thinking or a fragment of a call came

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
        self._truncated = self._truncated or chunk.get("truncated") is True
        pieces: list[AnyPiece] = []
        if progress := as_mapping(chunk.get("prompt_progress")):
            processed, total, cached = (as_int(progress.get(name)) for name in ("processed", "total", "cache"))
            pieces.append(ProgressPiece(processed, total, cached=cached))
        for choice in as_entries(chunk.get("choices"))[:1]:
            pieces += self._read_choice(choice)
        self.grew = bool(pieces) or before != (self._call_characters, self._reason)
        return pieces

    def finish(self) -> list[AnyPiece]:
        reason = "tool_calls" if self._calls else self._reason or "unknown"
        end = FinishPiece(reason, self._usage, self._counts_reuse, "", 0, self._read_seconds, self._truncated)
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
        details = as_mapping(usage.get("prompt_tokens_details"))
        self._counts_reuse = (
            self._counts_reuse or "cached_tokens" in details or "cache_n" in timings or "prompt_n" in timings
        )
        self._read_seconds = as_int(timings.get("prompt_ms")) / 1000 or self._read_seconds
        reused = as_int(details.get("cached_tokens")) or as_int(timings.get("cache_n"))
        read = as_int(timings.get("prompt_n")) + as_int(timings.get("cache_n"))
        self._usage = Usage(
            prompt_tokens=as_int(usage.get("prompt_tokens")) or read or self._usage.prompt_tokens,
            completion_tokens=as_int(usage.get("completion_tokens"))
            or as_int(timings.get("predicted_n"))
            or self._usage.completion_tokens,
            reused_tokens=reused or self._usage.reused_tokens,
        )
