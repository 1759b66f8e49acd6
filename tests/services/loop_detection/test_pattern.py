"""A loop, as the user reads it."""

import pytest

from ollm.services.loop_detection.pattern import shorten_text


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("one\n  two\tthree ", "one two three"),
        ("x" * 120, "x" * 120),
        ("x" * 121, "x" * 120 + "…"),
        ("é" * 500, "é" * 120 + "…"),
        (" " * 480 + "late", ""),
        (" " * 479 + "late", "l"),
    ],
)
def test_a_text_is_shown_on_one_line_of_bounded_length(text: str, short: str) -> None:
    assert shorten_text(text) == short
