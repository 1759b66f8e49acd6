"""Whatever JSON a server sends, we answer with pieces or with a sentence, never with a fault of our own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ModelError
from ollm.providers import ollama, server_kind
from ollm.providers.base import FinishPiece
from ollm.providers.openai_compatible import StreamAssembler
from ollm.providers.server_errors import extract_error_text, make_server_error, make_unknown_model_error
from ollm.system.http import FullResponse
from tests.providers.conftest import openai, said
from tests.servers import Answer, ScriptedServer

KEYS = [
    *("choices", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "id", "usage", "timings"),
    *(
        "finish_reason",
        "prompt_tokens",
        "prompt_tokens_details",
        "cached_tokens",
        "prompt_progress",
        "processed",
        "total",
    ),
    *("message", "thinking", "done", "done_reason", "prompt_eval_count", "error", "detail", "data", "owned_by", "meta"),
    *("models", "model_info", "general.architecture", "capabilities", "context_length", "default_generation_settings"),
]
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["llamacpp", "m"])
)
keys = st.sampled_from(KEYS)
values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=4), max_leaves=12)
objects = st.dictionaries(keys, values, max_size=5)


@given(chunks=st.lists(objects, max_size=6))
def test_any_chunks_become_pieces(chunks: list[dict[str, Any]]) -> None:
    assembly = StreamAssembler()
    for chunk in chunks:
        assembly.add_chunk(chunk)
        assembly.add_chunk(server_kind.convert_completion_chunk(chunk))

    assert isinstance(assembly.finish()[-1], FinishPiece)


@given(value=objects, other=objects)
def test_any_lines_and_pages_of_ollama_are_read(value: dict[str, Any], other: dict[str, Any]) -> None:
    ollama.read_pieces(value)
    ollama.read_finish(value, called=False)
    ollama.read_model_info("m", value, other)


@given(value=values, other=values)
def test_any_list_of_models_is_read(value: Any, other: Any) -> None:
    kind = server_kind.detect_kind(value)
    for info in server_kind.parse_model_infos(value):
        server_kind.add_server_details(info, kind, other)


@given(value=values, status=st.integers(300, 599))
def test_any_refusal_is_one_line_with_what_to_do(value: Any, status: int) -> None:
    body = json.dumps(value).encode()
    error = make_server_error("http://x", FullResponse(status=status, headers={}, body=body))

    assert isinstance(error, ModelError)
    assert error.action
    assert str(error).isprintable()
    assert len(extract_error_text(value)) <= 300


@given(name=st.text(max_size=20), names=st.lists(st.text(max_size=20), max_size=5))
def test_any_names_of_models_can_be_told(name: str, names: list[str]) -> None:
    assert make_unknown_model_error("http://x", name, names).action


def test_json_nested_too_deep_is_a_sentence() -> None:
    async def main() -> None:
        deep = b"data: " + b"[" * 200_000 + b"\n\n"
        raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + deep
        async with ScriptedServer([Answer(raw=raw)]) as server:
            try:
                await said(openai(server.base_url))
            except ModelError as error:
                assert "not JSON" in str(error)  # noqa: PT017 - inside a coroutine of its own
            else:
                raise AssertionError("it was taken for an answer")

    asyncio.run(main())
