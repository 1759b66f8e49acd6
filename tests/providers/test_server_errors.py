"""A server's refusal as one clear sentence with what to do next."""

import json
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
    as_int,
    extract_error_text,
    lists_no_models,
    make_error_from_text,
    make_server_error,
    make_unknown_model_error,
)
from ollm.system.http import FullResponse

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
    ("words", "action"),
    [
        ("needs --enable-auto-tool-choice", "start vLLM with --enable-auto-tool-choice"),
        ("tools param requires --jinja flag", "start llama.cpp with --jinja"),
        ("tool calling is not supported", "choose another model"),
    ],
)
def test_how_the_server_would_take_tools(words: str, action: str) -> None:
    error = make_error_from_text(URL, words, 400)

    assert isinstance(error, ToolsUnsupportedError)
    assert action in error.action


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
    assert error.message == f"The prompt does not fit the context window of {WHERE}: {words}."


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("prompt has 5000 tokens, more than the maximum", 500),
        ("the prompt is over the limit", 400),  # no number
        ("5000 tokens are fine", 400),  # not too much
        ("5000 exceeds what I like", 400),  # no measure of prompts
    ],
)
def test_other_refusals_are_not_about_length(words: str, status: int) -> None:
    assert not isinstance(make_error_from_text(URL, words, status), PromptTooLongError)


def test_an_answer_that_is_too_long_is_told_apart() -> None:
    words = "max_tokens is too large: 9000. maximum context length is 4096 tokens, 100 in the messages"

    error = make_error_from_text(URL, words, 400)

    assert isinstance(error, PromptTooLongError)
    assert (error.window, error.prompt_tokens, error.answer_tokens) == (4096, 100, 9000)
    assert error.message == f"{WHERE} has no room for an answer of 9000 tokens: {words}."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (json.dumps({"error": "bad"}).encode(), ": bad"),
        (b"<html><h1>Bad Gateway</h1></html>", ": Bad Gateway"),
        (b"\xff\xfe", ": \ufffd\ufffd"),
        (b"", ""),
    ],
)
def test_an_answer_that_is_not_200(body: bytes, words: str) -> None:
    error = make_server_error(URL, FullResponse(status=502, headers={}, body=body))

    assert error.message == f"{WHERE} failed (HTTP 502){words}."
    assert error.status == 502


@pytest.mark.parametrize(("status", "none"), [(404, True), (405, True), (501, True), (400, False), (500, False)])
def test_a_server_that_keeps_no_list_is_told_from_one_that_refuses(status: int, none: bool) -> None:
    error = ModelError("x")
    error.status = status

    assert lists_no_models(error) is none


@pytest.mark.parametrize(
    ("known", "message", "action"),
    [
        ([], f"{URL} has no model 'lama', nor any other.", "Pull one on that server first."),
        (
            ["lama", "qwen"],
            f"{URL} lists the model 'lama', but does not find it.",
            "Check its log, or choose another model.",
        ),
        (["llama", "qwen"], f"{URL} has no model 'lama'.", "Did you mean 'llama'? List all with `ollm models list`."),
        (
            list("zyxwvu"),
            f"{URL} has no model 'lama'.",
            "It has u, v, w, x, y. List all with `ollm models list`.",
        ),
    ],
)
def test_an_unknown_model_brings_the_nearest(known: list[str], message: str, action: str) -> None:
    error = make_unknown_model_error(URL, "lama", known)

    assert (error.message, error.action) == (message, action)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (5.9, 5),
        (0, 0),
        (-1, 0),
        (True, 0),
        ("5", 0),
        (None, 0),
        (1e15, 0),
        (1e15 - 1, 10**15 - 1),
        (float("nan"), 0),
    ],
)
def test_a_count_is_a_number_that_is_not_negative(value: Any, number: int) -> None:
    assert as_int(value) == number
