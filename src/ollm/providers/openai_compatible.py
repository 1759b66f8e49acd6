"""Servers with the OpenAI chat API (llama.cpp, vLLM, LM Studio and others), including their extensions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ollm.domain.clock import monotonic
from ollm.domain.errors import (
    ModelError,
    PromptTooLongError,
    ToolsUnsupportedError,
    UnknownModelError,
)
from ollm.domain.messages import JsonObject, PromptMessage, count_same_objects, encode_calls
from ollm.providers.base import (
    AnyPiece,
    ChatRequest,
    ModelInfo,
    WireIds,
    as_mapping,
    as_text,
    build_functions,
    find_model,
    merge_user_messages,
    write_thinking,
)
from ollm.providers.exchange import (
    NOT_LOADED,
    PAGE_TIMEOUT_SECONDS,
    Exchange,
    ServerProvider,
    is_passing,
    wait_while_loading,
)
from ollm.providers.server_errors import as_int, lists_no_models, make_unknown_model_error
from ollm.providers.server_kind import (
    HOST_PAGES,
    LLAMA_CPP,
    LLAMA_SWAP,
    LM_STUDIO,
    SGLANG,
    VLLM,
    Kind,
    add_server_details,
    add_window_of_page,
    choose_window_page,
    detect_kind,
    find_host_pages,
    parse_model_infos,
)
from ollm.providers.stream_assembly import StreamAssembler
from ollm.system.http import Response, iter_server_events

if TYPE_CHECKING:
    from ollm.providers.llama_slots import LlamaSlots

REFUSAL_STATUSES = (400, 404, 422)
DONE_MARK = "[DONE]"
MAX_BATCHED_REQUESTS = 256  # It is vLLM's default for --max-num-seqs.


class OpenAICompatible(ServerProvider):
    """One server. Its kind is detected once, from its list of models."""

    def __init__(self, exchange: Exchange, api: str = "/v1", name: str = "openai") -> None:
        super().__init__(exchange, exchange.url + api)
        self.name = name
        self.slots = 0  # The server runs so many requests at a time, if it says so.
        self.described: ModelInfo | None = None  # It is the last description of the model by the server.
        self.is_silent = False  # Its page about the model did not answer, so its window is unknown.
        self._api = api
        self._listing: Any = None
        self._encoded = MessageEncoder()
        self.kind: Kind | None = None  # None means not connected yet.
        self._inner_kind: Kind | None = None  # It is that of the server behind llama-swap.
        self._slots: LlamaSlots | None = None
        self._answering = self._replacement = ""  # The model of the last answer, and a new one to report.

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        pieces = self.stream_when_ready(request.model, lambda: self._stream_pieces(request))
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except ModelError as error:
            if not may_name_model(error) or (unknown := await self._find_unlisted(request.model, error)) is None:
                raise
            raise unknown from error

    async def _find_unlisted(self, model: str, error: ModelError) -> UnknownModelError | None:
        """Return an error that names the server's models, if it may have refused the name."""
        names = [info.name for info in parse_model_infos(await self._get_listing(anew=True))]
        unlisted = model not in names and (self.kind != LLAMA_CPP or bool(self.pages))
        unknown = names and (unlisted or isinstance(error, UnknownModelError))
        return make_unknown_model_error(self.base_url, model, names) if unknown else None

    async def _build_body(self, request: ChatRequest) -> JsonObject:
        if self.kind is None and request.settings and request.settings.differs_by_server:
            await self._get_listing()  # Each kind of server takes thinking and penalties as other fields.
        body = build_chat_body(request, self._encoded, self.kind or "other")
        if self.kind == LLAMA_CPP:
            body |= {"return_progress": True, "cache_prompt": True}
        return body | self._slots.take_next_slot() if self._slots else body

    async def models(self) -> list[ModelInfo]:
        self._remember(await self._exchange.request_json("GET", f"{self._api}/models"))
        return await self.add_states(parse_model_infos(self._listing))

    async def prepare(self, model: str, announce: Callable[[str], object]) -> str:
        self.announce = announce
        if (found := find_model(parse_model_infos(await self._get_listing()), model)) is None:
            return model
        (info,) = await self.add_states([found])
        if info.state in NOT_LOADED:
            announce(f"loading {info.name}")
            # The request itself reports why a server cannot; LM Studio before 0.4 loads only for one.
            with suppress(*(() if "watch" in self.pages else (ModelError,))):
                await self.set_loaded(info.name, loaded=True)
            await self._get_listing(anew=True)  # The server describes a loaded model in more detail.
        return info.name

    async def describe(self, model: str) -> ModelInfo:
        """Describe a model. A server without a model list accepts any name."""
        infos = parse_model_infos(await self._get_listing())
        info = find_model(infos, model)
        if info is None and infos and (self.kind != LLAMA_CPP or self.pages):  # A single one takes any name.
            raise make_unknown_model_error(self.base_url, model, [each.name for each in infos])
        info = info or (infos[0] if infos else ModelInfo(name=model))
        if self.pages:
            (info,) = await self.add_states([info])
            self._heard = 0.0 if info.state in NOT_LOADED else monotonic()
        if self.pages is HOST_PAGES[LLAMA_SWAP]:
            info = await self._look_behind_swap(info)
        page = {LLAMA_CPP: "/props", LM_STUDIO: "/api/v0/models"}.get(self.kind or "other")
        if page is None:
            self.described = info if info.window else await self._ask_other_pages(info)
            return self.described
        details = await self._exchange.try_request_json("GET", self.locate(page, info.name))
        self.is_silent = details is None
        if self.is_silent:
            return info
        self.slots = as_int(as_mapping(details).get("total_slots"))
        self.described = add_server_details(info, self.kind or "other", details)
        return self.described

    async def _look_behind_swap(self, info: ModelInfo) -> ModelInfo:
        """Ask the server that llama-swap runs for a loaded model."""
        if info.state not in NOT_LOADED:
            listed = await self._exchange.try_request_json("GET", self.locate("/v1/models", info.name))
            self.kind = self._inner_kind = detect_kind(listed)
            inner = next(iter(parse_model_infos(listed)), info)
            return replace(inner, name=info.name, state=info.state)
        return info

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

    async def count_prompt(self, request: ChatRequest) -> int | None:
        if slots := await self.open_slots(request.model):
            with suppress(ModelError):
                rendered = await self.render(request)
                return (len(await slots.tokenize(rendered)) or None) if rendered else None
        if self.kind != VLLM:
            return None
        page, body = self.locate("/tokenize", request.model), _select_template_fields(request, VLLM)
        tokens = as_mapping(await self._exchange.try_request_json("POST", page, body)).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    async def render(self, request: ChatRequest) -> str | None:
        await self._get_listing()
        if self.kind != LLAMA_CPP:
            return None
        page, body = self.locate("/apply-template", request.model), _select_template_fields(request, LLAMA_CPP)
        try:
            found = as_mapping(await self._exchange.request_json("POST", page, body))
        except ModelError as error:
            if lists_no_models(error):  # Older servers do not have this page.
                return None
            raise
        return as_text(found.get("prompt")) or None

    async def is_idle(self, model: str) -> bool:
        """Return True if no slot of a llama.cpp server has work, or False if that is unknown."""
        if self.kind != LLAMA_CPP or (opened := await self.open_slots(model)) is None:
            return False
        slots = await opened.list_slots()
        return bool(slots) and not any(slot.busy for slot in slots)

    async def open_slots(self, model: str) -> LlamaSlots | None:
        """Open the slots of a model on a llama.cpp server. Returns None for any other server."""
        await self._get_listing()
        if self.kind == LLAMA_CPP and (self._slots is None or self._slots.model != model):
            from ollm.providers.llama_slots import LlamaSlots

            self._slots = LlamaSlots(self._exchange, self.locate, model)
        return self._slots

    async def _stream_pieces(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        path, body, done, heard = f"{self._api}/chat/completions", await self._build_body(request), False, False
        async with self._exchange.stream(path, body) as response, aclosing(_iter_events(response)) as events:
            assembly = StreamAssembler()
            async for data in events:
                heard = True
                if done := data.strip() == DONE_MARK:
                    break
                try:
                    pieces = assembly.add_chunk(self._decode_chunk(data))
                except ModelError:
                    if done := assembly.calls_complete:  # Even after a whole call, llama.cpp may report an error.
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
        if self._answering not in ("", assembly.model) and self.kind == LLAMA_CPP and not self.pages:
            self._replacement = assembly.model
        self._answering = assembly.model
        for piece in assembly.finish():
            yield piece

    def take_replacement(self) -> str:
        """Return the model that a server of a single one got in place of the one before, once."""
        found, self._replacement = self._replacement, ""
        return found

    async def _get_listing(self, *, anew: bool = False) -> Any:
        """Get the server's model list, waiting while it loads a model. Returns None if it has no list."""
        if self.kind is not None and not anew:
            return self._listing
        try:
            ask = lambda: self._exchange.request_json("GET", f"{self._api}/models")  # noqa: E731
            self._remember(await wait_while_loading(ask, self.announce))
        except ModelError as error:
            if is_passing(error):  # A window guessed without the list would stay.
                raise
            self._remember(None)
        return self._listing

    def _remember(self, listing: Any) -> None:
        self._listing, self.kind = listing, self._inner_kind or detect_kind(listing)
        self.pages = find_host_pages(listing, self.kind)


def may_name_model(error: ModelError) -> bool:
    """Return True if a refusal may concern the model's name, however it is worded."""
    if isinstance(error, PromptTooLongError | ToolsUnsupportedError):
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
        if self._ids.lack(messages[same:]):  # The results have them too, so all are encoded again.
            same, self._messages, self._ids = 0, [], WireIds()
        known = dict(zip(map(id, self._messages[same:]), self._encoded[same:], strict=False))
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
        "tools": build_functions(request.tools) or None,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
    body = {name: value for name, value in body.items() if value is not None}
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
