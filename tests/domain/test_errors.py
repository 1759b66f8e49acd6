"""Errors: each has the exit code that others test against, and says what to do next."""

import pytest

from ollm.domain import errors
from ollm.domain.errors import ExitCode, OllmError, PromptTooLongError, ToolFailure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("OllmError", 1),
        ("NotFoundError", 1),
        ("StorageError", 1),
        ("BusyError", 1),
        ("UsageError", 2),
        ("NoServerError", 3),
        ("ModelError", 4),
        ("UnknownModelError", 4),
        ("DeniedError", 5),
        ("ModelTimeoutError", 124),
    ],
)
def test_an_error_ends_the_command_with_its_code(error: str, code: int) -> None:
    assert getattr(errors, error)("x").exit_code == code


def test_the_other_exit_codes_are_the_documented_ones() -> None:
    assert (ExitCode.DONE, ExitCode.LOOP, ExitCode.INTERRUPTED) == (0, 6, 130)


def test_an_error_says_what_happened_and_then_what_to_do() -> None:
    assert str(OllmError("It broke.", action="Mend it.")) == "It broke. Mend it."
    assert str(OllmError("It broke.")) == "It broke."
    assert ToolFailure("Timeout", "Too slow.").kind == "Timeout"


@pytest.mark.parametrize(
    ("prompt", "answer", "window", "only_answer"),
    [
        (1126, 7067, 8192, True),
        (9000, 100, 8192, False),
        (8192, 100, 8192, False),
        (0, 500, 0, True),
        (9000, 0, 8192, False),
    ],
)
def test_a_prompt_that_fits_needs_only_less_room_for_the_answer(
    prompt: int, answer: int, window: int, only_answer: bool
) -> None:
    error = PromptTooLongError("x", prompt_tokens=prompt, answer_tokens=answer, window=window)

    assert error.only_answer_too_long is only_answer
