"""Talking to a model server: retries before the first byte, failures as clear sentences."""

from __future__ import annotations

from typing import Any

import pytest

from ollm.config.settings import ProviderTimeouts
from ollm.domain.errors import (
    ModelError,
    ModelTimeoutError,
    UsageError,
)
from ollm.providers.base import ProgressPiece
from ollm.providers.exchange import Exchange
from ollm.system import http
from tests.providers.conftest import openai, said, text_of
from tests.servers import Answer, ScriptedServer

BUSY = Answer(status=503, body={"error": {"message": "Too many requests", "code": 503}})


LOADING = Answer(status=503, body={"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})


async def test_a_busy_server_is_asked_again_before_the_first_byte() -> None:
    async with ScriptedServer([BUSY, BUSY, "ready"]) as server:
        assert text_of(await said(openai(server.base_url))) == "ready"

    assert len(server.chats) == 3


async def test_a_server_that_stays_busy_says_so_in_its_own_words() -> None:
    async with ScriptedServer(lambda request: BUSY) as server:
        with pytest.raises(ModelError, match=r"HTTP 503.*Too many requests"):
            await said(openai(server.base_url))

    assert 3 <= len(server.chats) <= 6


async def test_a_server_that_loads_its_model_is_waited_for_and_the_wait_is_shown() -> None:
    async with ScriptedServer([LOADING, LOADING, "ready"]) as server:
        pieces = await said(openai(server.base_url))

    assert [piece for piece in pieces if isinstance(piece, ProgressPiece)] == [ProgressPiece(stage="loading")] * 2
    assert text_of(pieces) == "ready"


async def test_a_model_that_is_never_loaded_ends_the_wait() -> None:
    async with ScriptedServer(lambda request: LOADING) as server:
        with pytest.raises(ModelTimeoutError, match=r"still loading the model.*firstToken"):
            await said(openai(server.base_url, ProviderTimeouts(connect=1, first_token=0.6, stall=1)))


async def test_a_connection_cut_before_any_answer_is_tried_again() -> None:
    async with ScriptedServer([Answer(raw=b""), "here"]) as server:
        assert text_of(await said(openai(server.base_url))) == "here"


async def test_the_key_goes_into_the_header_and_nowhere_else() -> None:
    async with ScriptedServer(["ok"]) as server:
        await said(openai(server.base_url, key=" secret-1 "))

    assert server.requests[0].headers["authorization"] == "Bearer secret-1"


def exchange(url: str = "http://h:1", key: str = "", **timeouts: float) -> Exchange:
    return Exchange(url, ProviderTimeouts(**timeouts), api_key=key)


async def test_the_key_is_never_repeated() -> None:
    asked = exchange(key=" sk-12345678 \n")

    assert asked.explain(http.BadResponse("bad sk-12345678")).message.endswith("bad [redacted].")
    assert asked.decode(b'{"a":"sk-12345678"}') == {"a": "[redacted]"}
    assert asked.decode('{"a":"sk-12345678"}') == {"a": "[redacted]"}
    assert exchange(key="short").decode('{"a":"short"}') == {"a": "short"}


@pytest.mark.parametrize("key", ["schlüssel-key", "two\nlines-key", "\x00"])
def test_a_key_that_cannot_be_one_is_wrong_usage(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        exchange(key=key)
    assert caught.value.message == "The API key contains invalid characters."


def test_an_address_that_cannot_be_one_is_wrong_usage() -> None:
    with pytest.raises(UsageError) as caught:
        exchange("ftp://h")
    assert caught.value.message == "ftp://h is not a valid server URL: ftp:// is not http:// or https://."


@pytest.mark.parametrize("data", [b"nonsense", b"\xff", "[" * 100_000])
async def test_what_is_no_json_is_said_with_what_to_check(data: Any) -> None:
    with pytest.raises(ModelError) as caught:
        exchange().decode(data)
    assert caught.value.message == "The model server at http://h:1 sent something that is not JSON."


async def test_what_a_server_may_or_may_not_offer_is_none_where_it_does_not() -> None:
    async with ScriptedServer([]) as server:
        asked = Exchange(
            server.base_url.removesuffix("/v1"),
            ProviderTimeouts(connect=1),
        )
        assert await asked.try_request_json("GET", "/no/such/page") is None
        with pytest.raises(ModelError):
            await asked.request_json("GET", "/no/such/page")
        await asked.close()
