"""The everyday one-shot line is read without click, and never otherwise than click reads it."""

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.cli.chat import chat
from ollm.cli.chat_options import OPTIONS, parse_simple_line

NAMES = [name for option in OPTIONS for name in option.names]
CHOICES = [choice for option in OPTIONS for choice in option.choices]
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(CHOICES),
    st.sampled_from(["hi", "-", "--", "", "-h", "--help", "-pho", "--prompt=x", "--mod", "-x", "chat", ".", "a b"]),
)


def read_by_click(words: list[str]) -> dict[str, object] | None:
    try:
        return chat.make_context("chat", list(words)).params
    except (click.ClickException, click.exceptions.Exit):
        return None


@settings(max_examples=500, deadline=None)
@given(words=st.lists(WORDS, max_size=8))
def test_a_line_that_is_read_without_click_means_what_click_makes_of_it(words: list[str]) -> None:
    found = parse_simple_line(words)

    assert found is None or found == read_by_click(words)


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "hi"],
        ["--prompt", "-"],
        ["-p", "hi", "-o", "json", "--model", "m", "--allow", "shell:ls", "--allow", "grep", "--yes"],
        ["--workspace", "x", "--mode", "plan", "--continue", "-p", "go on"],
    ],
)
def test_everyday_lines_need_no_click(words: list[str]) -> None:
    found = parse_simple_line(words)

    assert found is not None
    assert found == read_by_click(words)


@pytest.mark.parametrize(
    "words",
    [[], ["--model", "m"], ["-p"], ["-p", "--yes"], ["-p", "hi", "more"], ["-p", "hi", "-o", "xml"], ["-phi"]],
)
def test_any_other_line_is_left_to_click(words: list[str]) -> None:
    assert parse_simple_line(words) is None
