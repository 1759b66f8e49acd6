"""The embedded model: llama.cpp in a child process, started on first use and treated like any other server."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.errors import ModelError, ModelTimeoutError, OllmError
from ollm.providers.base import (
    AnyPiece,
    ChatRequest,
    ModelInfo,
    ProgressPiece,
    Provider,
)
from ollm.providers.exchange import Exchange
from ollm.providers.local_models import model_files
from ollm.providers.local_models.embedded_server import EmbeddedOptions, EmbeddedReady
from ollm.providers.local_models.gguf import read_trained_window
from ollm.providers.local_models.model_files import ModelFile, NoModelError
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.window import DEFAULT_WINDOW_TOKENS, FALLBACK_WINDOW_TOKENS
from ollm.system.install_command import describe_extra_install
from ollm.system.process_tree import count_cores

PASSED_VARIABLES = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "SYSTEMROOT",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "GGML_VK_VISIBLE_DEVICES",
        "PYTHONDONTWRITEBYTECODE",
    )
)
ENDING_SECONDS = 2.0


class EmbeddedProcess:
    """One running server with one model and one window."""

    def __init__(self, process: asyncio.subprocess.Process, log: BinaryIO, order: EmbeddedOptions, url: str) -> None:
        self._process = process
        self._log = log
        self.window = order.window
        self.key = order.key
        self.url = url

    @classmethod
    async def start(
        cls, model: ModelFile, window: int, environment: Mapping[str, str], timeout: float
    ) -> EmbeddedProcess:
        """Start the process and return when it can answer. Raises ModelError with the reason if it cannot."""
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        order = EmbeddedOptions(
            path=str(model.path),
            name=model.name,
            window=window,
            threads=choose_thread_count(),
            key=secrets.token_urlsafe(32),
            tiny=model.tiny,
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "ollm.providers.local_models.embedded_server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={name: value for name, value in environment.items() if name in PASSED_VARIABLES},
            start_new_session=True,
        )
        started = cls(process, log, order, "")
        try:
            started.url = await started._wait_until_ready(order, timeout)
        except BaseException:
            await started.stop(at_once=True)
            raise
        return started

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def stop(self, *, at_once: bool = False) -> None:
        """Close stdin to end the process. Kill it if it does not end, for example while it loads a model."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(0 if at_once else ENDING_SECONDS):
                await self._process.wait()
        except (TimeoutError, asyncio.CancelledError):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._log.close()

    async def explain_death(self) -> ModelError | None:
        """Explain why the process ended, or None if it runs. Waits briefly, as its connection breaks first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._process.wait()
        return None if self.alive else self._explain_exit()

    async def _wait_until_ready(self, order: EmbeddedOptions, timeout: float) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        try:
            async with asyncio.timeout(timeout):
                line = await self._process.stdout.readline()
                if not line:
                    await self._process.wait()
                    raise self._explain_exit()
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"The embedded model {order.name} did not load within {timeout:g} s.",
                action="Raise provider.timeouts.firstToken, or choose a smaller model.",
            ) from error
        ready = msgspec.json.decode(line, type=EmbeddedReady)
        if ready.error:
            raise ModelError(
                f"The embedded server could not load {order.path}: {ready.error}. {self._read_log_tail()}".rstrip(),
                action="Download the model again with `ollm models get NAME`.",
            )
        return ready.url

    def _explain_exit(self) -> ModelError:
        code = self._process.returncode or 0
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ModelError(
            f"The embedded model stopped ({how}). {self._read_log_tail()}".rstrip(),
            action="It restarts with your next message; if memory is short, choose a smaller model or context window.",
        )

    def _read_log_tail(self) -> str:
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        self._log.seek(max(0, size - 2000))
        told = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"Last output: {told[-1][:300]}" if told else ""


def choose_thread_count() -> int:
    """Choose one thread on two cores, where two starve each other, and about half of many cores."""
    cores = count_cores()
    return max(1, min(cores // 2 if cores > 4 else cores - 1, 8))


MAX_TINY_ANSWER_TOKENS = 512  # A tiny model that writes more is repeating itself.

TINY_PARAMETERS_PER_BYTE = 1.4  # This holds for quantized files; larger ones state their size in their names.


def open_embedded(
    settings: ProviderSettings, directory: Path, environment: Mapping[str, str], why: str
) -> tuple[EmbeddedProvider, str]:
    """Return the provider and its model's name. Raises NoServerError if the engine or the file is not installed."""
    why = why[:1].upper() + why[1:]
    if find_spec("xllamacpp") is None:
        raise NoModelError(f"{why}, and the embedded engine is not installed.", "", describe_extra_install("embedded"))
    wanted = settings.model
    file = model_files.find_model(directory, wanted) if wanted else model_files.find_default(directory)
    if file is None:
        known = wanted if wanted and model_files.find_in_catalogue(wanted) else None
        name = known or model_files.DEFAULT_MODEL.name
        missing = f"there is no model file {wanted!r}" if wanted else "no model is installed yet"
        other = "" if known else " (or qwen2.5-coder-1.5b, which does real work)"
        raise NoModelError(f"{why}, and {missing}.", name, f"`ollm models get {name}`{other}")
    return EmbeddedProvider(file, settings.timeouts, environment), file.name


class EmbeddedProvider(Provider):
    """A provider for one model file. Its process starts on first use, after a crash, and for another window."""

    name = "embedded"

    def __init__(self, file: ModelFile, timeouts: ProviderTimeouts, environment: Mapping[str, str]) -> None:
        self.base_url = f"embedded:{file.name}"
        self._file = file
        self._timeouts = timeouts
        self._environment = environment
        self._process: EmbeddedProcess | None = None
        self._server: OpenAICompatible | None = None
        self._starting = asyncio.Lock()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        if not self._is_running(request.window):
            yield ProgressPiece(stage="loading")
        try:
            server = await self._ensure_server(request.window)
            async with aclosing(server.stream(self._limit_tokens(request))) as pieces:
                async for piece in pieces:
                    yield piece
        except OllmError as error:
            if (death := await self._find_death()) is None:
                raise
            raise death from error

    async def models(self) -> list[ModelInfo]:
        return [await self.describe(self._file.name)]

    async def describe(self, model: str) -> ModelInfo:
        """Describe the model from its file, without starting the server."""
        running = self._server if self._is_running(None) else None
        return ModelInfo(
            name=self._file.name,
            sampling=(await running.describe(model)).sampling if running else None,
            size=self._file.size,
            trained_window=read_trained_window(self._file.path),
            parameters=int(self._file.size * TINY_PARAMETERS_PER_BYTE) if self._file.tiny else None,
        )

    async def count_prompt(self, request: ChatRequest) -> int | None:
        return await (await self._ensure_server(request.window)).count_prompt(request)

    async def render(self, request: ChatRequest) -> str | None:
        return await (await self._ensure_server(request.window)).render(request)

    async def is_idle(self, model: str) -> bool:
        """Return True if the process runs and has no work."""
        running = self._server is not None and self._is_running(None)
        return running and self._server is not None and await self._server.is_idle(model)

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
        """Return the server with this window, starting it if needed. None accepts any window."""
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

    async def _find_death(self) -> OllmError | None:
        """Return why the process ended, if it did: that broke the stream."""
        death = await self._process.explain_death() if self._process is not None else None
        if death is not None:
            await self.close()
        return death
