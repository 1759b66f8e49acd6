"""Answers of an MCP server, as models and people get them."""

from pathlib import Path
from types import SimpleNamespace as Block
from typing import Any

import pytest
from mcp_types.methods import validate_server_result

from ollm.extensions.mcp.results import (
    MAX_IMAGE_CHARACTERS,
    extract_images,
    extract_text,
    mend_answer,
)
from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry
from tests.servers.answers import Answer


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


def test_only_so_many_pictures_of_some_size_are_taken() -> None:
    assert len(extract_images([image() for _ in range(9)])) == 4
    assert len(extract_images([image("A" * MAX_IMAGE_CHARACTERS)])) == 1
    assert extract_images([image("A" * (MAX_IMAGE_CHARACTERS + 1)), text("t")]) == ()
    assert (
        extract_images([image("not base64!"), image(""), Block(type="image", mime_type="image/x-odd", data="AAAA")])
        == ()
    )


async def test_what_nobody_knows_in_an_answer_is_text_and_loses_nothing_else(tmp_path: Path) -> None:
    blocks = [{"type": "hologram", "x": 1}, {"type": "text", "text": "plain"}, "bare", {"type": "image", "data": 5}]
    answers: dict[str, Any] = {
        "mixed": {"content": blocks},
        "worded": {"content": "just words", "isError": "no"},
        "structured": {"structuredContent": [3, 4]},
        "linked": {"content": [{"type": "resource", "resource": {"uri": "a b", "text": "inside", "_meta": 7}}]},
    }
    calls = [Answer(calls=[(f"raw__{name}", {})]) for name in answers]
    async with running(tmp_path, [*calls, "done"]) as runner:
        tools = [{"name": name} for name in answers]
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=tools, answers=answers)})
        done = await runner.run("-p", "go", "--allow", "raw__*")

    results = [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "tool"]
    assert done.code == 0, done.err
    assert results == [
        '{"type":"hologram","x":1}\nplain\nbare\n{"type":"image","data":5}',
        "just words",
        "[3,4]",
        "inside",
    ]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("given", [{}, "words", {"content": [{"type": "hologram"}], "resultType": 5}])
def test_an_answer_is_readable_in_every_version(version: str, given: Any) -> None:
    validate_server_result("tools/call", version, mend_answer(given))


def test_a_question_in_place_of_an_answer_is_left_as_it_is() -> None:
    question = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}

    assert mend_answer(question) == question
