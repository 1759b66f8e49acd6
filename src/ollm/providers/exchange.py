"""Communication with a model server: requests with retries before the first byte, and clear errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ollm.config.settings import ProviderTimeouts
from ollm.domain.clock import monotonic
from ollm.domain.errors import ModelError, ModelTimeoutError, NoServerError, OllmError, UsageError
from ollm.domain.lazy import compile_late
from ollm.providers.base import (
    LoadState,
    ModelInfo,
    PieceStream,
    ProgressPiece,
    Provider,
    as_entries,
    as_mapping,
    as_text,
    decode_json,
)
from ollm.providers.server_errors import ModelLoadingError, extract_error_text, make_error_from_text, make_server_error
from ollm.providers.server_kind import LOAD_STATES
from ollm.system import http

QUICK_TIMEOUT_SECONDS = 10.0
PAGE_TIMEOUT_SECONDS = 2.0  # The page may not exist.
LOADING_SECONDS = 0.5
LOAD_TIMEOUT_SECONDS = 3600.0  # The page answers once the model is loaded.
MAX_TURN_SECONDS = 8.0  # The longest pause between two attempts while other programs load models.
MAX_LOSSES = 3  # A model lost more often may crash each time.
COLD_SECONDS = 60.0  # The server may unload the model this long after an answer.
NOT_LOADED: tuple[LoadState, ...] = ("unloaded", "loading", "downloading")
HEADER_NAME = compile_late(r"(?i)(?!content-length$|transfer-encoding$)[a-z0-9!#$%&'*+.^_`|~-]+")
# By the failure of a request: the error, its text, and what to do. A more special failure is before a general one.
FAILURE_MEANINGS: dict[type[http.HttpFailure], tuple[type[OllmError], str, str]] = {
    http.CertificateNotTrusted: (
        NoServerError,
        "The model server at {name} has a certificate that is not trusted ({why}).",
        "Set SSL_CERT_FILE to the CA's PEM file.",
    ),
    http.ConnectFailed: (
        NoServerError,
        "No model server answers at {name} ({why}).",
        "{first_step}, or set provider.baseUrl; `ollm doctor` lists the servers it finds.",
    ),
    http.FirstByteTimeout: (
        ModelTimeoutError,
        "The model server at {name} did not start answering: {why}.",
        "A large model may still be loading: try again, or raise provider.timeouts.firstToken.",
    ),
    http.StreamStalled: (
        ModelTimeoutError,
        "The model server at {name} stopped sending mid-answer: {why}.",
        "Try again, or raise provider.timeouts.stall.",
    ),
    http.ConnectionBroken: (
        ModelError,
        "The model server at {name} disconnected: {why}.",
        "Check its log (often out of memory); restart it if needed, then try again.",
    ),
}
UNREADABLE = (ModelError, "The model server at {name} sent an unreadable response: {why}.", "Check provider.baseUrl.")
BUSY_STATUSES = (429, 502, 503, 504)
SECONDS_TO_RETRY = (2.0, 15.0)  # The first is for a server that never answered, the second for one that may restart.
MIN_HIDDEN_CHARACTERS = 8
Failure = TypeVar("Failure", bound=OllmError)
Answer = TypeVar("Answer")


async def wait_while_loading(ask: Callable[[], Awaitable[Answer]], announce: Callable[[str], object]) -> Answer:
    """Ask until the server no longer says that it loads a model, which is announced once."""
    said = False
    while True:
        try:
            return await ask()
        except ModelLoadingError:
            if not said:
                announce("loading the model")
            said = True
            await asyncio.sleep(LOADING_SECONDS)


class Exchange:
    """JSON over HTTP with the server at a base URL."""

    def __init__(
        self, url: str, timeouts: ProviderTimeouts, *, api_key: str = "", proxied: bool = False, configured: str = ""
    ) -> None:
        self.url = url
        self._named = configured or url  # Errors show this name.
        self._timeouts = http.Timeouts(connect=timeouts.connect, first=timeouts.first_token, stall=timeouts.stall)
        key = _clean_api_key(api_key) if api_key else ""
        self._secrets = [key]  # Errors hide these, even if the server repeats one.
        headers = {"Authorization": f"Bearer {key}"} if api_key else {}
        try:
            self._client = http.open_client(url, headers=headers, timeouts=self._timeouts, proxied=proxied)
        except ValueError as error:
            raise UsageError(f"{url} is not a valid server URL: {error}.", action="Set provider.baseUrl.") from error

    def add_headers(self, headers: Mapping[str, str], secrets: Sequence[str]) -> None:
        """Send these headers with every request. Errors show neither their values nor `secrets`."""
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
                raise UsageError(f"The header {name!r} in models has invalid characters.", action="Correct it.")
        self._secrets += [*secrets, *headers.values()]
        self._client.add_headers(headers)

    def extend_first_token_timeout(self, seconds: float) -> None:
        """Wait at least this long for the first token: a slow machine needs time to read a long prompt."""
        self._timeouts = msgspec.structs.replace(self._timeouts, first=max(self._timeouts.first, seconds))

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def stream(self, path: str, body: Any) -> AsyncIterator[http.Response]:
        """Stream an answer with status 200. Any other status is raised as the matching error."""
        data = msgspec.json.encode(body)
        try:
            async with self._client.stream("POST", path, data, timeouts=self._timeouts) as response:
                if response.status != 200:
                    raise self.explain_answer(await http.read_full_response(response))
                yield response
        except http.HttpFailure as failure:
            raise self.explain(failure) from failure

    async def request_json(
        self, method: str, path: str, body: Any = None, *, timeout: float = QUICK_TIMEOUT_SECONDS
    ) -> Any:
        """Return a whole decoded answer. Raises for statuses other than 200 and for invalid JSON."""
        answer = await self.send_request(method, path, body, timeout=timeout)
        if answer.status != 200:
            raise self.explain_answer(answer)
        return self.decode(answer.body)

    async def try_request_json(
        self, method: str, path: str, body: Any = None, *, timeout: float = QUICK_TIMEOUT_SECONDS
    ) -> Any:
        """Like `request_json`, for optional endpoints: None if the server refuses or the answer is invalid."""
        try:
            return await self.request_json(method, path, body, timeout=timeout)
        except ModelError:
            return None

    async def send_request(
        self, method: str, path: str, body: Any = None, *, timeout: float = QUICK_TIMEOUT_SECONDS
    ) -> http.FullResponse:
        data = b"" if body is None else msgspec.json.encode(body)
        limits = http.Timeouts(connect=self._timeouts.connect, first=timeout, stall=timeout)
        try:
            return await self._client.fetch(method, path, data, timeouts=limits)
        except http.HttpFailure as failure:
            raise self.explain(failure) from failure

    def decode(self, data: bytes | str) -> Any:
        try:
            return decode_json(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ModelError(
                f"The model server at {self._named} sent something that is not JSON.",
                action="Check provider.baseUrl and provider.type (ollama or openai).",
            ) from error

    def explain_answer(self, answer: http.FullResponse) -> ModelError:
        return self.hide_secrets(make_server_error(self._named, answer))

    def hide_secrets(self, error: Failure) -> Failure:
        """Hide the key and the values of headers in an error that the server may have worded."""
        for secret in (one for one in self._secrets if len(one) >= MIN_HIDDEN_CHARACTERS):
            error.message = error.message.replace(secret, "[redacted]")
        return error

    def explain(self, failure: http.HttpFailure) -> OllmError:
        first_step = "Check the network" if self.url.startswith("https:") else "Start it"
        kind, said, action = next(
            (meaning for cause, meaning in FAILURE_MEANINGS.items() if isinstance(failure, cause)), UNREADABLE
        )
        return self.hide_secrets(
            kind(said.format(name=self._named, why=failure), action=action.format(first_step=first_step))
        )


class ServerProvider(Provider):
    """A server reached over HTTP."""

    def __init__(self, exchange: Exchange, base_url: str) -> None:
        super().__init__()
        self.base_url = base_url
        self._exchange = exchange
        self.pages: Mapping[str, str] = {}  # The server's pages for loading models.
        self.announce: Callable[[str], object] = str  # Called when the server loads the model.
        self._heard: float | None = None  # Time of the last piece of an answer; 0 after a failure.
        self._before_retry: Callable[[], Awaitable[object]] | None = None

    def add_headers(self, headers: Mapping[str, str], secrets: Sequence[str]) -> None:
        self._exchange.add_headers(headers, secrets)

    def set_before_retry(self, act: Callable[[], Awaitable[object]] | None) -> None:
        """Set what is done before a request that has failed is sent again."""
        self._before_retry = act

    def allow(self, seconds: float) -> None:
        self._exchange.extend_first_token_timeout(seconds)

    async def close(self) -> None:
        await self._exchange.close()

    def locate(self, page: str, model: str) -> str:
        """Return the address of a page about one model, on a server that may have several."""
        address = self.pages.get("about", "{page}")
        return address.format(page=page, joint="&" if "?" in page else "?", model=quote(model))

    async def set_loaded(self, model: str, *, loaded: bool, window: int = 0) -> None:
        if not self.pages:
            await super().set_loaded(model, loaded=loaded)
        elif loaded and "watch" in self.pages:
            await self._load_and_watch(model)
        else:
            fields = {"keep_alive": 0} if not loaded else {"options": {"num_ctx": window}} if window else {}
            await self._post(
                self.pages["load" if loaded else "unload"],
                {"model": model, "instance_id": model, "stream": False, **fields},
                model,
            )
            while "watch" in self.pages:
                await asyncio.sleep(LOADING_SECONDS)
                if await self._read_load_state(model) != "loaded":
                    break

    async def _load_and_watch(self, model: str) -> None:
        """Load a model and wait for it. If another program loads one instead, try again after a growing pause."""
        begun, beside, pause = False, set[str](), LOADING_SECONDS
        while (states := await self._read_load_states()).get(model) in NOT_LOADED:
            others = {name for name, state in states.items() if name != model and state in ("loading", "loaded")}
            if states[model] != "unloaded":
                beside = others
                await asyncio.sleep(LOADING_SECONDS)
                continue
            if begun and others <= beside:
                raise ModelError(
                    f"The model server at {self.base_url} could not load {model}.",
                    action="Its log has the reason: often a damaged file, or too little memory.",
                )
            if begun:
                pause = min(2 * pause, MAX_TURN_SECONDS)
                await asyncio.sleep(pause)
            begun, beside = True, others
            await self._post(self.pages["load"], {"model": model}, model)

    async def _read_load_states(self) -> dict[str, LoadState]:
        return {name: self._read_state(entry) for name, entry in (await self._list_entries()).items()}

    async def _read_load_state(self, model: str) -> LoadState:
        (info,) = await self.add_states([ModelInfo(name=model)])
        return info.state

    async def _post(self, page: str, body: Mapping[str, Any], model: str) -> None:
        method, address = "GET" if page.endswith("/health") else "POST", page.format(model=quote(model))
        answer = await self._exchange.send_request(method, address, body, timeout=LOAD_TIMEOUT_SECONDS)
        if answer.status != 200 and not ("watch" in self.pages and answer.status == 400):  # Another loaded it first.
            raise self._exchange.explain_answer(answer)

    async def _list_entries(self) -> dict[str, dict[str, Any]]:
        listed = as_mapping(await self._exchange.try_request_json("GET", self.pages["states"]))
        found = as_entries(listed.get(self.pages.get("entries", "data")))
        return {as_text(entry.get(self.pages.get("name", "id"))): entry for entry in found}

    def _read_state(self, entry: dict[str, Any]) -> LoadState:
        word = as_mapping(entry.get("status")).get("value") or entry.get("state") or self.pages.get("listed")
        return LOAD_STATES.get(as_text(word), "")

    async def add_states(self, infos: list[ModelInfo]) -> list[ModelInfo]:
        """Add the load states that the server shows on a page of its own."""
        if not self.pages:
            return infos
        entries, other = await self._list_entries(), {"state": self.pages.get("unlisted", "")}
        found = [entries.get(info.name, entries.get(f"{info.name}:latest", other)) for info in infos]
        states = map(self._read_state, found)
        return [msgspec.structs.replace(info, state=state) for info, state in zip(infos, states, strict=True)]

    async def stream_when_ready(self, model: str, attempt: Callable[[], PieceStream]) -> PieceStream:
        """Stream once the server is there and the model is loaded. While the server says that it loads, no time runs
        out. A request that has failed is sent again only if no part of an answer came."""
        begin, answered, losses = monotonic(), False, 0
        while True:
            try:
                if await self._is_unloaded(model):
                    yield ProgressPiece(stage="loading")
                    if "watch" in self.pages:
                        await self._load_and_watch(model)
                async with aclosing(attempt()) as pieces:
                    async for piece in pieces:
                        answered, self._heard = answered or not isinstance(piece, ProgressPiece), monotonic()
                        yield piece
                    return
            except ModelLoadingError as error:
                yield ProgressPiece(stage="loading")
                if error.status == 400:
                    await self.models()
                    await self.set_loaded(model, loaded=True)
            except OllmError as error:
                restarts = self._heard is not None and self.name != "embedded"  # The embedded process is restarted.
                if not answered and losses < MAX_LOSSES and await self._lost_model(error, model):
                    losses += 1
                elif answered or monotonic() - begin > SECONDS_TO_RETRY[restarts] or not is_passing(error):
                    raise
                self._heard = None if self._heard is None else 0.0
                yield ProgressPiece(stage="connecting")
            await asyncio.sleep(LOADING_SECONDS)
            if self._before_retry:
                await self._before_retry()

    async def _lost_model(self, error: OllmError, model: str) -> bool:
        """Return True if the server unloaded the model while the request came, for another one or by hand."""
        if "watch" not in self.pages or not isinstance(error, ModelError) or error.status not in (0, 500):
            return False
        await asyncio.sleep(LOADING_SECONDS)  # The model's process may still be ending.
        return await self._read_load_state(model) in NOT_LOADED

    async def _is_unloaded(self, model: str) -> bool:
        """Return True if the model is not in memory. The server is asked only after a pause."""
        if not self._heard or monotonic() - self._heard < COLD_SECONDS:
            return self._heard == 0
        return await self._read_load_state(model) in NOT_LOADED

    def _decode_chunk(self, data: bytes | str) -> dict[str, Any]:
        """Decode a part of an answer. An error in mid-stream has status 200."""
        value = as_mapping(self._exchange.decode(data))
        if value.get("error"):
            error = make_error_from_text(self.base_url, extract_error_text(value), 200, value)
            raise self._exchange.hide_secrets(error)
        return value

    def _make_broken_error(self) -> ModelError:
        return ModelError(
            f"The model server at {self.base_url} stopped in the middle of the answer.",
            action="Check its log, then try again.",
        )


def is_passing(error: OllmError) -> bool:
    """Return True for a failure before the first byte that is not a timeout."""
    cause = error.__cause__
    if isinstance(cause, http.ConnectFailed | http.ConnectionBroken):
        return not (cause.started or isinstance(cause, http.CertificateNotTrusted))
    return isinstance(error, ModelError) and error.status in BUSY_STATUSES


def _clean_api_key(api_key: str) -> str:
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError(
            "The API key contains invalid characters.", action="Check provider.apiKey or provider.apiKeyEnv."
        )
    return key
