"""Communication with a model server: requests with retries before the first byte, and clear errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from ollm.config.settings import ProviderTimeouts
from ollm.domain.clock import monotonic
from ollm.domain.errors import ModelError, ModelTimeoutError, NoServerError, OllmError, UsageError
from ollm.domain.lazy import compile_late
from ollm.providers.base import (
    Provider,
    as_mapping,
    decode_json,
)
from ollm.providers.server_errors import ModelLoadingError, extract_error_text, make_error_from_text, make_server_error
from ollm.system import http

QUICK_TIMEOUT_SECONDS = 10.0
LOADING_SECONDS = 0.5
HEADER_NAME = compile_late(r"(?i)(?!content-length$|transfer-encoding$)[a-z0-9!#$%&'*+.^_`|~-]+")
BUSY_STATUSES = (429, 502, 503, 504)
MIN_HIDDEN_CHARACTERS = 8
Failure = TypeVar("Failure", bound=OllmError)


class ServerBusy(Exception):  # noqa: N818 - a reason to try again, not a fault
    """The server reports that it cannot answer yet."""

    def __init__(self, answer: http.FullResponse) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Exchange:
    """JSON over HTTP with the server at a base URL."""

    def __init__(
        self, url: str, timeouts: ProviderTimeouts, *, api_key: str = "", proxied: bool = False, configured: str = ""
    ) -> None:
        self.url = url
        self._named = configured or url  # as errors name it
        self._timeouts = http.Timeouts(connect=timeouts.connect, first=timeouts.first_token, stall=timeouts.stall)
        key = _clean_api_key(api_key) if api_key else ""
        self._secrets = [key]  # hidden in errors, even if the server repeats one
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

    async def wait_for_loading(self, begin: float) -> bool:
        """Wait for the next attempt while a server loads its model. Returns False if the first token is overdue."""
        await asyncio.sleep(LOADING_SECONDS)
        return monotonic() - begin < self._timeouts.first

    @asynccontextmanager
    async def stream(self, path: str, body: Any) -> AsyncIterator[http.Response]:
        """Stream an answer with status 200. Any other status is raised as the matching error."""
        data = msgspec.json.encode(body)
        async with AsyncExitStack() as stack:
            try:
                yield await self._begin(stack, path, data)
            except http.HttpFailure as failure:
                raise self.explain(failure) from failure

    async def request_json(
        self, method: str, path: str, body: Any = None, *, timeout: float = QUICK_TIMEOUT_SECONDS
    ) -> Any:
        """Return a whole decoded answer. Raises for statuses other than 200 and for invalid JSON."""
        answer = await self.send_request(method, path, body, timeout=timeout)
        if answer.status != 200:
            raise self._explain_answer(answer)
        return self.decode(answer.body)

    async def try_request_json(
        self, method: str, path: str, body: Any = None, *, timeout: float = QUICK_TIMEOUT_SECONDS
    ) -> Any:
        """Like `request_json`, for optional endpoints: None if the server refuses or the answer is invalid."""
        try:
            answer = await self.send_request(method, path, body, timeout=timeout)
            return decode_json(answer.body) if answer.status == 200 else None
        except (msgspec.DecodeError, RecursionError, ModelError):
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

    def _explain_answer(self, answer: http.FullResponse) -> ModelError:
        return self.hide_secrets(make_server_error(self._named, answer))

    def hide_secrets(self, error: Failure) -> Failure:
        """Hide the key and the values of headers in an error that the server may have worded."""
        for secret in (one for one in self._secrets if len(one) >= MIN_HIDDEN_CHARACTERS):
            error.message = error.message.replace(secret, "[redacted]")
        return error

    def explain(self, failure: http.HttpFailure) -> OllmError:
        return self.hide_secrets(self._explain_failure(failure))

    def _explain_failure(self, failure: http.HttpFailure) -> OllmError:
        where = f"The model server at {self._named}"
        match failure:
            case http.CertificateNotTrusted():
                return NoServerError(
                    f"{where} has a certificate that is not trusted ({failure}).",
                    action="Set SSL_CERT_FILE to the CA's PEM file.",
                )
            case http.ConnectFailed():
                first_step = "Check the network" if self.url.startswith("https:") else "Start it"
                return NoServerError(
                    f"No model server answers at {self._named} ({failure}).",
                    action=f"{first_step}, or set provider.baseUrl; `ollm doctor` lists the servers it finds.",
                )
            case http.FirstByteTimeout():
                return ModelTimeoutError(
                    f"{where} did not start answering: {failure}.",
                    action="A large model may still be loading: try again, or raise provider.timeouts.firstToken.",
                )
            case http.StreamStalled():
                return ModelTimeoutError(
                    f"{where} stopped sending mid-answer: {failure}.",
                    action="Try again, or raise provider.timeouts.stall.",
                )
            case http.ConnectionBroken():
                return ModelError(
                    f"{where} disconnected: {failure}.",
                    action="Check its log (often out of memory); restart it if needed, then try again.",
                )
        return ModelError(f"{where} sent an unreadable response: {failure}.", action="Check provider.baseUrl.")

    async def _begin(self, stack: AsyncExitStack, path: str, data: bytes) -> http.Response:
        """Start the stream. The retry machinery is imported only after a failed first attempt."""
        try:
            return await self._attempt_request(stack, path, data)
        except (ServerBusy, http.HttpFailure) as error:
            if not _is_worth_retrying(error):
                raise
        import stamina
        from stamina.instrumentation import set_on_retry_hooks

        set_on_retry_hooks([])  # a repeated request is nothing to tell on stderr
        try:
            async for attempt in stamina.retry_context(
                on=_is_worth_retrying,
                attempts=4,
                timeout=self._timeouts.first,
                wait_initial=0.2,
                wait_max=2,
                wait_jitter=0.2,
            ):
                with attempt:
                    return await self._attempt_request(stack, path, data)
        except ServerBusy as busy:
            raise self._explain_answer(busy.answer) from busy
        raise AssertionError("retry_context ends by returning or raising")

    async def _attempt_request(self, stack: AsyncExitStack, path: str, data: bytes) -> http.Response:
        response = await stack.enter_async_context(self._client.stream("POST", path, data, timeouts=self._timeouts))
        if response.status == 200:
            return response
        answer = await _read_full_response(response)
        await stack.aclose()
        error = self._explain_answer(answer)
        busy = answer.status in BUSY_STATUSES and not isinstance(error, ModelLoadingError)
        raise ServerBusy(answer) if busy else error


class ServerProvider(Provider):
    """A server reached over HTTP."""

    def __init__(self, exchange: Exchange, base_url: str) -> None:
        super().__init__()
        self.base_url = base_url
        self._exchange = exchange

    def add_headers(self, headers: Mapping[str, str], secrets: Sequence[str]) -> None:
        self._exchange.add_headers(headers, secrets)

    def allow(self, seconds: float) -> None:
        self._exchange.extend_first_token_timeout(seconds)

    async def close(self) -> None:
        await self._exchange.close()

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


async def _read_full_response(response: http.Response) -> http.FullResponse:
    body = bytearray()
    async for chunk in response.iter_chunks():
        body += chunk
        if len(body) > 1_000_000:
            break
    return http.FullResponse(status=response.status, headers=dict(response.headers), body=bytes(body))


def _is_worth_retrying(error: Exception) -> bool:
    """Return True for a failure before the first byte that is not a timeout."""
    if isinstance(error, ServerBusy):
        return True
    if isinstance(error, http.CertificateNotTrusted):
        return False
    return isinstance(error, http.ConnectFailed | http.ConnectionBroken) and not error.started


def _clean_api_key(api_key: str) -> str:
    key = api_key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError(
            "The API key contains invalid characters.", action="Check provider.apiKey or provider.apiKeyEnv."
        )
    return key
