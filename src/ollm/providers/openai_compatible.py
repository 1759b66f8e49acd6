"""Servers that speak the OpenAI chat API: llama.cpp, vLLM, LM Studio and others; what each offers beyond it is used."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from ollm.domain.errors import (
    ModelError,
    ModelTimeoutError,
    OllmError,
    PromptTooLongError,
    ToolsUnsupportedError,
    UnknownModelError,
)
from ollm.domain.messages import JsonObject
from ollm.providers.base import AnyPiece, ChatRequest, CompletionRequest, ModelInfo, ProgressPiece, relay
from ollm.providers.exchange import Exchange, ServerProvider
from ollm.providers.openai_messages import DONE_MARK, MessageEncoder, StreamAssembler, build_chat_body
from ollm.providers.server_errors import ModelLoadingError, make_unknown_model_error
from ollm.providers.server_kind import (
    LLAMA_CPP,
    LM_STUDIO,
    VLLM,
    Kind,
    add_server_details,
    add_window_of_page,
    choose_window_page,
    convert_completion_chunk,
    detect_kind,
    parse_model_infos,
)
from ollm.providers.wire import as_mapping, as_text
from ollm.system.http import Response, iter_server_events

Chunk = dict[str, Any]
REFUSAL_STATUSES = (400, 404, 422)
PAGE_TIMEOUT_SECONDS = 2.0

# For llama.cpp: inside a string a schema allows anything, and small models fill it with line breaks for ever. Only what
# was just written counts, and only long repetitions do, so that a text copied from further up is not held against it.
REPETITION_PENALTIES: JsonObject = {"dry_multiplier": 0.8, "dry_allowed_length": 24, "dry_penalty_last_n": 64}


class OpenAICompatible(ServerProvider):
    """One server. Its kind is detected once, from its list of models."""

    def __init__(self, exchange: Exchange, api: str = "/v1", name: str = "openai") -> None:
        super().__init__(exchange, exchange.url + api)
        self.name = name
        self._api = api
        self._listing: Any = None
        self._encoded = MessageEncoder()
        self.kind: Kind | None = None  # None: not connected yet

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        body = build_chat_body(request, self._encoded)
        if self.kind == LLAMA_CPP:
            body |= {"return_progress": True, "cache_prompt": True}

        async def list_models(error: OllmError) -> OllmError | None:
            if not may_name_model(error):
                return None
            names = [info.name for info in parse_model_infos(await self._get_listing(anew=True))]
            if isinstance(error, UnknownModelError):
                return make_unknown_model_error(self.base_url, request.model, names) if names else None
            unknown = bool(names) and request.model not in names and self.kind != LLAMA_CPP
            return make_unknown_model_error(self.base_url, request.model, names) if unknown else None

        return relay(self._exchange.hide_key(self._stream_when_loaded(body)), list_models)

    def complete(self, request: CompletionRequest) -> AsyncGenerator[AnyPiece, None]:
        body: JsonObject = {"model": request.model, "prompt": request.prompt, "n_predict": request.max_tokens}
        body |= {"stream": True, "cache_prompt": True, "return_progress": True, "stop": list(request.stop)}
        if request.schema is not None:
            body |= {"json_schema": request.schema, **REPETITION_PENALTIES}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return self._exchange.hide_key(self._stream_pieces("/completion", body, convert_completion_chunk))

    async def models(self) -> list[ModelInfo]:
        self._remember(await self._exchange.request_json("GET", f"{self._api}/models"))
        return parse_model_infos(self._listing)

    async def describe(self, model: str) -> ModelInfo:
        """Describe a model; a server without a list accepts any name."""
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
        return add_server_details(info, self.kind or "other", await self._exchange.try_request_json("GET", page))

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
            return await self._request_token_count(_select_template_fields(request))
        rendered = await self.render(request)
        if rendered is None:
            return None
        return await self._request_token_count({"content": rendered, "add_special": True, "parse_special": True})

    async def render(self, request: ChatRequest) -> str | None:
        await self._get_listing()
        if self.kind != LLAMA_CPP:
            return None
        found = as_mapping(
            await self._exchange.try_request_json("POST", "/apply-template", _select_template_fields(request))
        )
        return as_text(found.get("prompt")) or None

    async def is_idle(self) -> bool:
        """True if no slot of a llama.cpp server has work; not where it cannot be known."""
        if self.kind != LLAMA_CPP:
            return False
        slots = await self._exchange.try_request_json("GET", "/slots", timeout=PAGE_TIMEOUT_SECONDS)
        return isinstance(slots, list) and bool(slots) and not any(map(is_slot_busy, slots))

    async def _stream_when_loaded(self, body: JsonObject) -> AsyncGenerator[AnyPiece, None]:
        """Stream once the model is loaded; llama.cpp answers 503 until then, for minutes if it is large."""
        reason: ModelLoadingError | None = None
        async with aclosing(self._exchange.iter_loading_attempts()) as attempts:
            async for _ in attempts:
                try:
                    async with aclosing(self._stream_pieces(f"{self._api}/chat/completions", body, dict)) as pieces:
                        async for piece in pieces:
                            yield piece
                        return
                except ModelLoadingError as error:
                    reason = error
                yield ProgressPiece(stage="loading")
        assert reason is not None
        raise ModelTimeoutError(reason.message, action="Raise provider.timeouts.firstToken.") from reason

    async def _stream_pieces(
        self, path: str, body: JsonObject, as_chunk: Callable[[Chunk], Chunk]
    ) -> AsyncGenerator[AnyPiece, None]:
        assembly = StreamAssembler()
        done = heard = False
        async with self._exchange.stream(path, body) as response, aclosing(_iter_events(response)) as events:
            async for data in events:
                heard = True
                if done := data.strip() == DONE_MARK:
                    break
                try:
                    pieces = assembly.add_chunk(as_chunk(self._decode_chunk(data)))
                except ModelError:
                    if done := assembly.calls_complete:  # llama.cpp misses the end of a call that it gave whole
                        break
                    raise
                if assembly.grew:
                    response.patience.reset(begun=assembly.writing)
                for piece in pieces:
                    yield piece
        if not heard:
            raise ModelError(
                f"The model server at {self.base_url} sent no answer.",
                action="Check that provider.baseUrl is the address of its API, and its log.",
            )
        if not done and not assembly.ended:
            raise self._make_broken_error()
        for piece in assembly.finish():
            yield piece

    async def _get_listing(self, *, anew: bool = False) -> Any:
        """Get the server's list, waiting while it loads its model; None if it keeps none."""
        if self.kind is not None and not anew:
            return self._listing
        async with aclosing(self._exchange.iter_loading_attempts()) as attempts:
            async for _ in attempts:
                try:
                    self._remember(await self._exchange.request_json("GET", f"{self._api}/models"))
                    break
                except ModelLoadingError:
                    continue
                except ModelError:
                    self._remember(None)
                    break
        return self._listing

    def _remember(self, listing: Any) -> None:
        self._listing, self.kind = listing, detect_kind(listing)

    async def _request_token_count(self, body: JsonObject) -> int | None:
        found = as_mapping(await self._exchange.try_request_json("POST", "/tokenize", body))
        tokens = found.get("tokens")
        return len(tokens) if isinstance(tokens, list) else None


def may_name_model(error: OllmError) -> bool:
    """True if a refusal may be about the name of the model, in whatever words."""
    if isinstance(error, PromptTooLongError | ToolsUnsupportedError) or not isinstance(error, ModelError):
        return False
    return isinstance(error, UnknownModelError) or error.status in REFUSAL_STATUSES


def _select_template_fields(request: ChatRequest) -> JsonObject:
    body = build_chat_body(request)
    return {key: body[key] for key in ("model", "messages", "tools") if key in body}


def is_slot_busy(slot: Any) -> bool:
    """Return True unless the slot says that it is idle."""
    told = as_mapping(slot)
    return told.get("is_processing", told.get("state")) not in (False, 0)


async def _iter_events(response: Response) -> AsyncGenerator[str, None]:
    """Yield the data of each event; a document that is not streamed counts as one event."""
    if "application/json" not in response.headers.get("content-type", ""):
        async with aclosing(iter_server_events(response.iter_chunks())) as events:
            async for event in events:
                yield event.data
        return
    body = bytearray()
    async for chunk in response.iter_chunks():
        body += chunk
    yield body.decode("utf-8", "replace")
