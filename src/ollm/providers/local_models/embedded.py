"""The embedded model: llama.cpp in a child process, used like any other server, started when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.errors import NoServerError, OllmError
from ollm.providers.base import AnyPiece, ChatRequest, CompletionRequest, ModelInfo, PieceStream, ProgressPiece, relay
from ollm.providers.exchange import Exchange
from ollm.providers.local_models import model_files
from ollm.providers.local_models.embedded_process import EmbeddedProcess
from ollm.providers.local_models.gguf import read_trained_window
from ollm.providers.local_models.model_files import ModelFile, ModelFileMissingError
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.window import DEFAULT_WINDOW_TOKENS, FALLBACK_WINDOW_TOKENS

MAX_TINY_ANSWER_TOKENS = 512  # tokens; a tiny model that says more is repeating itself


def open_embedded(
    settings: ProviderSettings, directory: Path, environment: Mapping[str, str], why: str
) -> tuple[EmbeddedProvider, str]:
    """The provider and its model's name. Raises NoServerError when the engine or the file is not on this machine."""
    if find_spec("xllamacpp") is None:
        raise NoServerError(
            f"{_capitalize(why)}, and the embedded engine is not installed.",
            action="Start Ollama or llama.cpp, or install ollm-cli[embedded].",
        )
    wanted = settings.model
    file = model_files.find_model(directory, wanted) if wanted else model_files.find_default(directory)
    if file is None:
        name = wanted if wanted and model_files.find_in_catalogue(wanted) else model_files.DEFAULT_MODEL.name
        missing = f"there is no model file {wanted!r}" if wanted else "no model is installed yet"
        raise ModelFileMissingError(f"{_capitalize(why)}, and {missing}.", name)
    return EmbeddedProvider(file, settings.timeouts, environment), file.name


def _capitalize(why: str) -> str:
    return why[:1].upper() + why[1:]


class EmbeddedProvider:
    """One model file. Its process starts with the first request, and again after a crash or for another window."""

    name = "embedded"

    def __init__(self, file: ModelFile, timeouts: ProviderTimeouts, environment: Mapping[str, str]) -> None:
        self.base_url = f"embedded:{file.name}"
        self._file = file
        self._timeouts = timeouts
        self._environment = environment
        self._process: EmbeddedProcess | None = None
        self._server: OpenAICompatible | None = None
        self._starting = asyncio.Lock()

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        async def start() -> AsyncGenerator[AnyPiece | PieceStream, None]:
            if not self._is_running(request.window):
                yield ProgressPiece(stage="loading")
            yield (await self._ensure_server(request.window)).stream(self._limit_tokens(request))

        return relay(start(), self._explain_crash)

    def complete(self, request: CompletionRequest) -> AsyncGenerator[AnyPiece, None]:
        async def start() -> AsyncGenerator[AnyPiece | PieceStream, None]:
            yield (await self._ensure_server(None)).complete(request)

        return relay(start(), self._explain_crash)

    async def models(self) -> list[ModelInfo]:
        return [await self.describe(self._file.name)]

    async def describe(self, model: str) -> ModelInfo:
        """Read from the file, without starting anything."""
        return ModelInfo(
            name=self._file.name, size=self._file.size, trained_window=read_trained_window(self._file.path)
        )

    async def count_tokens(self, model: str, text: str) -> int | None:
        return await (await self._ensure_server(None)).count_tokens(model, text)

    async def count_prompt(self, request: ChatRequest) -> int | None:
        return await (await self._ensure_server(request.window)).count_prompt(request)

    async def render(self, request: ChatRequest) -> str | None:
        return await (await self._ensure_server(request.window)).render(request)

    async def is_idle(self) -> bool:
        """Whether its process runs and has no work."""
        running = self._server is not None and self._is_running(None)
        return running and self._server is not None and await self._server.is_idle()

    async def continues_answers(self) -> bool:
        return True

    def allow(self, seconds: float) -> None:
        self._timeouts = replace(self._timeouts, first_token=max(self._timeouts.first_token, seconds))

    async def close(self) -> None:
        server, self._server = self._server, None
        process, self._process = self._process, None
        if server is not None:
            await server.close()
        if process is not None:
            await process.stop()

    def _limit_tokens(self, request: ChatRequest) -> ChatRequest:
        if not self._file.tiny:
            return request
        return replace(request, max_tokens=min(request.max_tokens or MAX_TINY_ANSWER_TOKENS, MAX_TINY_ANSWER_TOKENS))

    def _is_running(self, window: int | None) -> bool:
        process = self._process
        return process is not None and process.alive and window in (None, process.window)

    async def _ensure_server(self, window: int | None) -> OpenAICompatible:
        """The server with this window; None takes it as it runs."""
        async with self._starting:
            if not self._is_running(window):
                await self.close()
                size = window or min(
                    DEFAULT_WINDOW_TOKENS, read_trained_window(self._file.path) or FALLBACK_WINDOW_TOKENS
                )
                wait = self._timeouts.first_token
                self._process = await EmbeddedProcess.start(self._file, size, self._environment, wait)
                exchange = Exchange(self._process.url, self._timeouts, api_key=self._process.key)
                self._server = OpenAICompatible(exchange, name=self.name)
                await self._server.models()
            assert self._server is not None
            return self._server

    async def _explain_crash(self, error: OllmError) -> OllmError | None:
        """A broken stream is explained by the death of the process, when that is the reason."""
        death = await self._process.explain_death() if self._process is not None else None
        if death is not None:
            await self.close()
        return death
