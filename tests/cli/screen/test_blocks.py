"""Streamed Markdown is cut into blocks that are printed once."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ollm.cli.screen.blocks import MarkdownBlocks

LINES = st.lists(st.sampled_from(["text", "- item", "  more", "1. one", "", "```py", "```", "~~~", "# head", "   ```"]))


@given(lines=LINES, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_whatever_is_fed_comes_out_once_and_in_order(lines: list[str], cuts: list[int]) -> None:
    text = "\n".join(lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    blocks, out = MarkdownBlocks(), []
    for start, end in pairwise(places):
        out += blocks.feed(text[start:end])
    out.append(blocks.finish())

    assert "".join("\n".join(out).split()) == "".join(text.split())
    assert blocks.open == ""


def test_code_is_one_block_however_many_blank_lines_it_has() -> None:
    blocks = MarkdownBlocks()

    assert blocks.feed("Look:\n```py\na\n\n\nb\n") == ["Look:"]
    assert blocks.feed("```\nafter") == ["```py\na\n\n\nb\n```"]
    assert blocks.open == "after"


def test_a_list_goes_on_after_a_blank_line_and_ends_at_plain_text() -> None:
    blocks = MarkdownBlocks()

    assert blocks.feed("1. one\n\n   ```\n   code\n   ```\n2. two\n\nPlain\n") == [
        "1. one\n\n   ```\n   code\n   ```\n2. two"
    ]
    assert blocks.finish() == "Plain"


def test_the_end_of_long_code_is_still_code() -> None:
    blocks = MarkdownBlocks()
    blocks.feed("```python\n" + "\n".join(f"line{number}" for number in range(50)))

    assert blocks.render_tail(3) == "```python\nline47\nline48\nline49"
