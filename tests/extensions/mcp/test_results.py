"""What an MCP server answers, as models and people get it."""

from types import SimpleNamespace as Block
from typing import Any

import pytest

from ollm.extensions.mcp.results import (
    MAX_IMAGE_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    build_result,
    extract_images,
    extract_text,
    render_contents,
)


def answer(*blocks: Block, error: bool = False, structured: Any = None) -> Block:
    return Block(content=list(blocks), is_error=error, structured_content=structured)


def text(words: str) -> Block:
    return Block(type="text", text=words)


def image(data: str = "AAAA") -> Block:
    return Block(type="image", mime_type="image/png", data=data)


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (text("hello"), "hello"),
        (Block(type="resource", resource=Block(uri="file:///a", text="inside")), "inside"),
        (Block(type="resource_link", name="doc", uri="file:///a"), "[doc: file:///a]"),
        (image("A" * 4000), "[image, image/png, about 3,000 bytes]"),
        (Block(type="audio", mime_type="audio/wav", data="AAAA"), "[audio, audio/wav, about 3 bytes]"),
    ],
)
def test_every_kind_of_block_is_read_or_named(block: Block, line: str) -> None:
    assert extract_text([block]) == line


def test_blocks_are_lines_and_empty_ones_are_left_out() -> None:
    assert extract_text([text("a"), text(""), text("b")]) == "a\nb"
    assert extract_text([]) == ""
    assert len(extract_text([text("x" * (MAX_TEXT_CHARACTERS + 5))])) == 2 * 1024 * 1024


def test_an_answer_is_its_text_with_its_pictures_beside() -> None:
    found = build_result(answer(text("done"), image()))

    assert found.llm_content == found.return_display == "done\n[image, image/png, about 3 bytes]"
    assert [(picture.media_type, picture.data) for picture in found.images] == [("image/png", "AAAA")]
    assert found.error is None


def test_an_answer_without_text_is_its_structure_or_a_word_about_it() -> None:
    assert build_result(answer(structured={"a": 1})).llm_content == '{"a":1}'
    assert build_result(answer(text("words"), structured={"a": 1})).llm_content == "words"
    assert build_result(answer()).llm_content == "(no output)"


def test_an_answer_that_failed_is_a_failure() -> None:
    found = build_result(answer(text("x" * 1500), error=True))

    assert found.error is not None
    assert (found.error.type, found.error.message) == ("McpError", "x" * 1000)
    assert found.llm_content == "Error McpError: " + "x" * 1500
    assert found.return_display == "x" * 1500


def test_only_so_many_pictures_of_some_size_are_taken() -> None:
    assert len(extract_images([image() for _ in range(9)])) == 4
    assert len(extract_images([image("A" * MAX_IMAGE_CHARACTERS)])) == 1
    assert extract_images([image("A" * (MAX_IMAGE_CHARACTERS + 1)), text("t")]) == ()


def test_a_resource_that_is_no_text_is_named() -> None:
    blobs = [
        Block(uri="a:b", mime_type="application/zip", blob="A" * 8),
        Block(uri="c:d", mime_type=None, blob="AAAA"),
        Block(text="t"),
    ]

    assert render_contents(blobs) == "[a:b: application/zip, about 6 bytes]\n[c:d: not text, about 3 bytes]\nt"
