"""Refusals of prompts that are too long, as servers word them or might: the numbers are found."""

from __future__ import annotations

import pytest

from ollm.domain.errors import PromptTooLongError
from ollm.providers.server_errors import make_error_from_text


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
