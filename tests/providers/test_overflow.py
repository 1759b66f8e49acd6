"""The numbers in a server's refusal of a request that does not fit its window, whoever words it."""

import pytest

from ollm.providers.overflow import OverflowNumbers, read_overflow_numbers, write_out


@pytest.mark.parametrize(
    ("text", "window", "prompt", "at_least", "answer"),
    [
        ("", 0, 0, False, 0),
        ("the request exceeds the available context size. n_ctx: 4096, n_prompt_tokens: 5000", 4096, 5000, False, 0),
        (
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
                "(4000 in the messages, 1000 in the completion)."
            ),
            4096,
            4000,
            False,
            1000,
        ),
        (
            "This model's maximum context length is 8,192 tokens. However, your messages resulted in 9,001 tokens.",
            8192,
            9001,
            False,
            0,
        ),
        ("Input has at least 5001 input tokens; max_model_len is 4096", 4096, 5001, True, 0),
        ("max_tokens is too large: 9000. This model supports a 4096 token context window", 4096, 0, False, 9000),
        ("prompt is too long: 9000 tokens > 4096", 4096, 9000, False, 0),
        ("`inputs` must have less than 1024 tokens. Given: 2000", 1024, 2000, False, 0),
        ("try to keep the first 6000 tokens when context size is 4096", 4096, 6000, False, 0),
        ("no numbers here", 0, 0, False, 0),
        ("max_tokens: 4096 exceeds the limit: 4096", 4096, 0, False, 0),
    ],
)
def test_the_numbers_are_read_from_the_words(text: str, window: int, prompt: int, at_least: bool, answer: int) -> None:
    assert read_overflow_numbers(text) == OverflowNumbers(
        window=window, prompt_tokens=prompt, prompt_at_least=at_least, answer_tokens=answer
    )


def test_only_the_beginning_of_a_long_body_is_looked_through() -> None:
    assert read_overflow_numbers("x" * 7990 + " n_ctx: 4096") == OverflowNumbers(), "half a number is none"
    assert read_overflow_numbers("x" * 7900 + " n_ctx: 4096").window == 4096


def test_a_body_is_written_out_to_be_read() -> None:
    assert write_out("words") == "words"
    assert write_out({"error": {"n_ctx": 4096}}) == '{"error":{"n_ctx":4096}}'
    assert read_overflow_numbers(write_out({"error": {"n_ctx": 4096}})).window == 4096
