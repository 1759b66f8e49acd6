"""Blocks out of an answer that comes bit by bit."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.providers.text_calls.block_stream import BlockStreamParser

ANSWER = "I will look.\n\nconf.py\n```python\nA = 1\n```\n\n```bash\npython conf.py\n```\nIt prints 7.\n"


def feed(text: str, cuts: list[int], **options: bool) -> tuple[str, BlockStreamParser]:
    parser = BlockStreamParser((), **options)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    shown = ""
    for start, end in itertools.pairwise(places):
        shown += parser.feed(text[start:end])
        if parser.is_over:
            break
    return shown + parser.finish(), parser


@given(st.lists(st.integers(0, 500), max_size=60))
def test_however_it_is_cut_the_steps_and_the_words_are_the_same(cuts: list[int]) -> None:
    shown, parser = feed(ANSWER, cuts)

    assert shown.strip() == "I will look."
    assert [(step.kind, step.path or step.body) for step in parser.steps] == [
        ("file", "conf.py"),
        ("shell", "python conf.py"),
    ]


@given(st.text(alphabet="ab `~#*.\n", max_size=80), st.lists(st.integers(0, 80), max_size=20))
def test_nothing_of_an_answer_in_words_is_lost(text: str, cuts: list[int]) -> None:
    shown, parser = feed(text, cuts)

    if not parser.steps:
        assert shown == text


def test_words_go_out_before_the_answer_is_over() -> None:
    parser = BlockStreamParser(())
    assert parser.feed("The port is ") == "The port is "
    assert parser.feed("8471.") == "8471."


def test_a_name_and_its_block_are_held_back() -> None:
    parser = BlockStreamParser(())
    assert parser.feed("conf.py\n```\nA = 1\n") == ""
    assert parser.is_held


@pytest.mark.parametrize("text", ["```bash\nrm -r x\n```", "Type:\n```bash\nls\n```\nThat lists files."])
def test_an_explanation_keeps_its_blocks(text: str) -> None:
    shown, parser = feed(text, [3, 9], quoting=True)

    assert shown == text
    assert parser.steps == []
