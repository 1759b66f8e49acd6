"""Errors and odd answers of model servers."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ProviderTimeouts
from ollm.domain.errors import (
    ModelError,
    PromptTooLongError,
    RequestRefusedError,
    ToolsUnsupportedError,
    UnknownModelError,
    UsageError,
)
from ollm.providers import ollama, server_kind
from ollm.providers.base import FinishPiece, ProgressPiece
from ollm.providers.exchange import Exchange
from ollm.providers.server_errors import (
    ModelLoadingError,
    extract_error_text,
    make_error_from_text,
    make_server_error,
    make_unknown_model_error,
)
from ollm.providers.stream_assembly import StreamAssembler
from ollm.system.http import FullResponse
from tests.providers.conftest import openai, said, text_of
from tests.servers import Answer, ScriptedServer

URL = "http://h:1"

WHERE = f"The model server at {URL}"


REFUSALS = json.loads((Path(__file__).parent / "answers" / "refusals.json").read_text(encoding="utf-8"))
KINDS = {"too-long": PromptTooLongError, "tools-unsupported": ToolsUnsupportedError, "unknown-model": UnknownModelError}


@pytest.mark.parametrize("noted", REFUSALS, ids=lambda noted: f"{noted['server']} {noted['means']}")
def test_refusals_of_real_servers_are_understood(noted: dict[str, Any]) -> None:
    error = make_server_error(URL, FullResponse(noted["status"], {}, json.dumps(noted["body"]).encode()))

    assert type(error) is KINDS[noted["means"]]
    if isinstance(error, PromptTooLongError):
        found = (error.window, error.prompt_tokens, error.prompt_at_least, error.answer_tokens)
        assert found == (noted["window"], noted["prompt"], noted.get("atLeast", False), noted["answer"])


def test_a_limit_of_the_answer_says_nothing_of_the_window() -> None:
    assert type(make_error_from_text(URL, "max_tokens must be at most 1024", 400)) is RequestRefusedError


@pytest.mark.parametrize(
    ("words", "status", "kind", "message"),
    [
        ("", 500, ModelError, f"{WHERE} failed (HTTP 500)."),
        ("out of memory", 500, ModelError, f"{WHERE} failed (HTTP 500): out of memory."),
        ("no", 401, ModelError, f"{WHERE} rejected the API key (HTTP 401): no."),
        ("no", 403, ModelError, f"{WHERE} rejected the API key (HTTP 403): no."),
        ("nothing here", 404, ModelError, f"{WHERE} does not support this request (HTTP 404): nothing here."),
        ("slow down", 429, ModelError, f"{WHERE} is rate limiting (HTTP 429): slow down."),
        ("there", 301, ModelError, f"{WHERE} redirects (HTTP 301): there."),
        ("odd", 418, ModelError, f"{WHERE} rejected the request (HTTP 418): odd."),
        ("odd", 400, RequestRefusedError, f"{WHERE} rejected the request (HTTP 400): odd."),
        ("odd", 422, RequestRefusedError, f"{WHERE} rejected the request (HTTP 422): odd."),
        ("boom", 200, ModelError, f"{WHERE} reported an error in the middle of its answer: boom."),
        ("Loading model", 503, ModelLoadingError, f"{WHERE} is still loading the model."),
        ("loading", 500, ModelError, f"{WHERE} failed (HTTP 500): loading."),
        ("model x not found", 400, UnknownModelError, f"{WHERE} does not have that model: model x not found."),
        ("no such model", 404, UnknownModelError, f"{WHERE} does not have that model: no such model."),
        ("Invalid model name", 400, UnknownModelError, f"{WHERE} does not have that model: Invalid model name."),
        (
            "m does not support tools",
            400,
            ToolsUnsupportedError,
            f"{WHERE} does not support tools for this model: m does not support tools.",
        ),
    ],
)
def test_what_the_words_and_the_status_mean(words: str, status: int, kind: type[ModelError], message: str) -> None:
    error = make_error_from_text(URL, words, status)

    assert type(error) is kind
    assert error.message == message
    assert error.action


@pytest.mark.parametrize(
    ("words", "status", "body"),
    [
        ("the request exceeds the available context size", 400, None),
        ("prompt has 5000 tokens, more than the maximum", 400, None),
        ("refused", 400, {"error": {"code": "context_length_exceeded"}}),
        ("refused", 500, {"type": "exceed_context_size_error"}),
        ("input length 5000 is too long", 413, None),
    ],
)
def test_a_prompt_that_does_not_fit(words: str, status: int, body: Any) -> None:
    error = make_error_from_text(URL, words, status, body)

    assert isinstance(error, PromptTooLongError)
    assert error.message == f"The prompt does not fit the model's context window: {words}."


@pytest.mark.parametrize(
    ("words", "status", "numbers"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.",
            400,
            (8192, 9000),
        ),
        (
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens.",
            400,
            (8192, 9000),
        ),
        ("The input (9001 tokens) is longer than the model's context length (8192 tokens).", 400, (8192, 9001)),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9100 tokens: 8100 tokens from the input messages and 1000 tokens for the completion.",
            400,
            (8192, 8100),
        ),
        ("Input length 9000 exceeds maximum allowed token size 8192", 422, (8192, 9000)),
        ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 422, (4095, 5000)),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8000 `inputs` tokens and 512 `max_new_tokens`",
            422,
            (8192, 8000),
        ),
        ("Prompt length 9000 is greater than max_seq_len 8192", 400, (8192, 9000)),
        ("Requested tokens (9000) exceed context window of 8192", 400, (8192, 9000)),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input (9000 > 8192)",
            400,
            (8192, 9000),
        ),
        (
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            400,
            (8192, 9000),
        ),
        ("prompt is too long: 9000 tokens > 8192 maximum", 400, (8192, 9000)),
        ("Your input is 9,000 tokens, which is over the limit of 8,192.", 413, (8192, 9000)),
        ("Token limit exceeded: got 9000, max 8192", 400, (8192, 9000)),
        ("Sequence too long (9000/8192)", 400, (8192, 9000)),
        ("input tokens 9000 > max input tokens 8192", 400, (8192, 9000)),
        ("The total number of tokens (9000) is above the allowed 8192.", 400, (8192, 9000)),
        ("context overflow: have 9000 need <= 8192 tokens", 400, (8192, 9000)),
        ("Prompt has 9000 tokens but only 8192 fit into the KV cache", 400, (8192, 9000)),
        ("Request too big for the model: 9000 tokens requested, window holds 8192 tokens", 413, (8192, 9000)),
        ("Temperature must be at most 2, got 300", 400, None),
        ("tool name is longer than 64 characters: 130", 400, None),
        ("Image exceeds the maximum size of 1024 pixels", 400, None),
        ("the prompt is over the limit", 400, None),  # no number
        ("5000 tokens are fine", 400, None),  # not too much
    ],
)
def test_the_window_and_the_prompt_are_read_from_any_wording(
    words: str, status: int, numbers: tuple[int, int] | None
) -> None:
    error = make_error_from_text("http://server", words, status, {"error": {"message": words}})

    found = (error.window, error.prompt_tokens) if isinstance(error, PromptTooLongError) else None
    assert found == numbers


KEYS = [
    *("choices", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage", "timings"),
    *(
        "finish_reason",
        "prompt_tokens",
        "prompt_tokens_details",
        "cached_tokens",
        "prompt_progress",
        "processed",
        "total",
    ),
    *("message", "thinking", "done", "done_reason", "prompt_eval_count", "error", "detail", "data", "owned_by", "meta"),
    *("models", "model_info", "general.architecture", "capabilities", "context_length", "default_generation_settings"),
]

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["llamacpp", "m"])
)

keys = st.sampled_from(KEYS)

values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=4), max_leaves=12)

objects = st.dictionaries(keys, values, max_size=5)


@given(chunks=st.lists(objects, max_size=6))
def test_any_chunks_become_pieces(chunks: list[dict[str, Any]]) -> None:
    assembly = StreamAssembler()
    for chunk in chunks:
        assembly.add_chunk(chunk)

    assert isinstance(assembly.finish()[-1], FinishPiece)


@given(value=objects, other=objects)
def test_any_lines_and_pages_of_ollama_are_read(value: dict[str, Any], other: dict[str, Any]) -> None:
    ollama.read_pieces(value)
    ollama.read_finish(value, called=False)
    ollama.read_model_info("m", value, other)


@given(value=values, other=values)
def test_any_list_of_models_is_read(value: Any, other: Any) -> None:
    kind = server_kind.detect_kind(value)
    for info in server_kind.parse_model_infos(value):
        server_kind.add_server_details(info, kind, other)


@given(value=values, status=st.integers(300, 599))
def test_any_refusal_is_one_line_with_what_to_do(value: Any, status: int) -> None:
    body = json.dumps(value).encode()
    error = make_server_error("http://x", FullResponse(status=status, headers={}, body=body))

    assert isinstance(error, ModelError)
    assert error.action
    assert str(error).isprintable()
    assert len(extract_error_text(value)) <= 300


@given(name=st.text(max_size=20), names=st.lists(st.text(max_size=20), max_size=5))
def test_any_names_of_models_can_be_told(name: str, names: list[str]) -> None:
    assert make_unknown_model_error("http://x", name, names).action


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


async def test_no_time_runs_out_while_the_server_says_that_it_loads() -> None:
    async with ScriptedServer([LOADING, LOADING, LOADING, "ready"]) as server:
        timeouts = ProviderTimeouts(connect=1, first_token=0.6, stall=1)
        assert text_of(await said(openai(server.base_url, timeouts))) == "ready"


async def test_a_connection_cut_before_any_answer_is_tried_again() -> None:
    async with ScriptedServer([Answer(raw=b""), "here"]) as server:
        assert text_of(await said(openai(server.base_url))) == "here"


def exchange(url: str = "http://h:1", key: str = "", **timeouts: float) -> Exchange:
    return Exchange(url, ProviderTimeouts(**timeouts), api_key=key)


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
