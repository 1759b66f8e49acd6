"""A server's refusal as one clear sentence with what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from ollm.domain.errors import (
    ModelError,
    PromptTooLongError,
    RequestRefusedError,
    ToolsUnsupportedError,
    UnknownModelError,
)
from ollm.providers.server_errors import (
    MAX_ERROR_CHARACTERS,
    ModelLoadingError,
    extract_error_text,
    make_error_from_text,
)

URL = "http://h:1"
WHERE = f"The model server at {URL}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"error": "bad."}, "bad"),
        ({"error": {"message": "deep"}}, "deep"),
        ({"error": None, "detail": [{"msg": "listed"}]}, "listed"),
        ({"message": "m", "detail": "d"}, "m"),
        ({"other": 1}, ""),
        ([], ""),
        ("two\nlines", "two lines"),
        ("x" * 500, "x" * MAX_ERROR_CHARACTERS),
        (5, "5"),
    ],
)
def test_what_the_server_said_from_any_of_the_shapes(value: Any, text: str) -> None:
    assert extract_error_text(value) == text


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
    ("words", "status"),
    [
        ("the prompt is over the limit", 400),  # no number
        ("5000 tokens are fine", 400),  # not too much
        ("5000 exceeds what I like", 400),  # no measure of prompts
    ],
)
def test_other_refusals_are_not_about_length(words: str, status: int) -> None:
    assert not isinstance(make_error_from_text(URL, words, status), PromptTooLongError)


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
    ],
)
def test_the_window_and_the_prompt_are_read_from_any_wording(
    words: str, status: int, numbers: tuple[int, int] | None
) -> None:
    error = make_error_from_text("http://server", words, status, {"error": {"message": words}})

    found = (error.window, error.prompt_tokens) if isinstance(error, PromptTooLongError) else None
    assert found == numbers
