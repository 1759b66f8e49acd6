"""The OpenAI-compatible provider: requests, streams, message order, keys."""

import asyncio
import time
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.errors import (
    ExitCode,
    ModelError,
    ModelTimeoutError,
    PromptTooLongError,
)
from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers import stream_assembly
from ollm.providers.base import (
    CallPiece,
    ChatRequest,
    FinishPiece,
    ProgressPiece,
    TextPiece,
    merge_user_messages,
)
from ollm.providers.openai_compatible import build_chat_body
from ollm.providers.stream_assembly import StreamAssembler
from tests.providers.conftest import ask, openai, said, text_of
from tests.servers import Answer, ScriptedServer

WISE = "Grüße, 世界 🌍\u2028 and\x85 more"


async def test_text_comes_as_it_is_said_and_the_end_says_what_it_cost() -> None:
    async with ScriptedServer(
        [Answer(text="Hello my friend", prompt_tokens=7, completion_tokens=3, cached_tokens=4)]
    ) as server:
        pieces = await said(openai(server.base_url))

    assert [p.text for p in pieces[:-1]] == ["Hello", " my", " friend"]
    assert pieces[-1] == FinishPiece("stop", Usage(prompt_tokens=7, completion_tokens=3, reused_tokens=4))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
async def test_chunk_borders_inside_a_character_change_nothing(size: int) -> None:
    async with ScriptedServer([Answer(text=WISE, piece_bytes=size, calls=[("w", {"content": WISE})])]) as server:
        pieces = await said(openai(server.base_url))

    assert text_of(pieces) == WISE
    assert CallPiece("w", {"content": WISE}, "call_0") in pieces


async def test_arguments_that_are_not_json_are_kept_as_the_model_wrote_them() -> None:
    async with ScriptedServer([Answer(calls=[("grep", '{"pattern": "x"'), ("ls", "")])]) as server:
        pieces = await said(openai(server.base_url))

    assert pieces[:2] == [CallPiece("grep", '{"pattern": "x"', "call_0"), CallPiece("ls", {}, "call_1")]


async def test_the_request_holds_messages_tools_calls_results_and_images() -> None:
    messages = (
        PromptMessage(role="system", content="Be brief."),
        PromptMessage(role="user", content="See", images=(ImagePart(media_type="image/png", data="AAAA"),)),
        PromptMessage(role="assistant", content="", calls=(ToolCall(id="c1", name="ls", arguments={"path": "ü"}),)),
        PromptMessage(role="tool", content="a.txt", call_id="c1", tool_name="ls"),
    )
    schema = ToolSchema(name="ls", description="List.", parameters={"type": "object"})
    answer_schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = ask(messages=messages, tools=(schema,), max_tokens=9, temperature=0.5, response_schema=answer_schema)
    async with ScriptedServer(["ok"]) as server:
        await said(openai(server.base_url), request)

    body = server.chats[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    assert body["messages"][2]["tool_calls"] == [
        {"id": "c00000001", "type": "function", "function": {"name": "ls", "arguments": '{"path":"ü"}'}}
    ]
    assert body["messages"][3] == {"role": "tool", "content": "a.txt", "tool_call_id": "c00000001"}
    assert body["tools"][0]["function"]["name"] == "ls"
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert (body["max_tokens"], body["temperature"]) == (9, 0.5)
    assert body["response_format"]["json_schema"]["schema"] == answer_schema


async def test_one_connection_serves_a_whole_turn() -> None:
    async with ScriptedServer(["a", "b", "c"]) as server:
        provider = openai(server.base_url)
        for _ in range(3):
            await said(provider)
        await provider.close()

    assert server.connections == 1


async def test_a_kept_connection_the_server_closed_is_replaced_without_a_word() -> None:
    async with ScriptedServer([Answer(text="a", close=True), "b"]) as server:
        provider = openai(server.base_url)

        assert text_of(await said(provider)) == "a"
        assert text_of(await said(provider)) == "b"


async def test_leaving_the_stream_closes_the_connection_at_once() -> None:
    async with ScriptedServer([Answer(text="one two three", pace=60)]) as server:
        provider = openai(server.base_url)
        async with aclosing(provider.stream(ask())) as pieces:
            assert await anext(pieces) == TextPiece("one")

        async with asyncio.timeout(20):
            await server.left.wait()


async def test_cancelling_the_task_closes_the_connection_at_once() -> None:
    async with ScriptedServer([Answer(text="never", delay=30)]) as server:
        task = asyncio.create_task(said(openai(server.base_url)))
        while not server.requests:
            await asyncio.sleep(0.005)
        task.cancel()

        async with asyncio.timeout(20):
            await server.left.wait()


async def test_a_slow_first_byte_is_waited_for_and_too_slow_a_one_named() -> None:
    async with ScriptedServer([Answer(text="late", delay=0.3), Answer(text="never", delay=30)]) as server:
        provider = openai(server.base_url, ProviderTimeouts(connect=1, first_token=0.6, stall=0.1))

        assert text_of(await said(provider)) == "late"
        with pytest.raises(ModelTimeoutError, match=r"did not start answering.*firstToken") as caught:
            await said(provider)
    assert caught.value.exit_code is ExitCode.TIMED_OUT
    assert len(server.chats) == 2  # a silent server is not asked twice


async def test_a_stall_in_mid_answer_is_named() -> None:
    async with ScriptedServer([Answer(text="one two three", stall_after=2)]) as server:
        with pytest.raises(ModelTimeoutError, match=r"stopped sending mid-answer.*provider.timeouts.stall"):
            await said(openai(server.base_url, ProviderTimeouts(connect=1, first_token=5, stall=0.2)))


async def test_a_slow_reader_is_not_taken_for_a_slow_server() -> None:
    async with ScriptedServer(["one two three"]) as server:
        provider = openai(server.base_url, ProviderTimeouts(connect=1, first_token=5, stall=0.2))
        texts = []
        async for piece in provider.stream(ask()):
            time.sleep(0.15)
            await asyncio.sleep(0.15)
            texts.append(piece)

    assert text_of(texts) == "one two three"


async def test_a_long_call_that_comes_in_fragments_is_no_silence() -> None:
    async with ScriptedServer([Answer(calls=[("write_file", {"content": "x" * 60})], pace=0.1)]) as server:
        pieces = await said(openai(server.base_url, ProviderTimeouts(connect=1, first_token=0.5, stall=0.4)))

    assert pieces[0] == CallPiece("write_file", {"content": "x" * 60}, "call_0")


async def test_reading_the_prompt_with_progress_is_no_silence() -> None:
    progress = [(n * 50, 600) for n in range(13)]
    async with ScriptedServer([Answer(text="x", progress=progress, pace=0.15)], kind="llama.cpp") as server:
        provider = openai(server.base_url, ProviderTimeouts(connect=20, first_token=1.5, stall=1.5))
        await provider.models()
        pieces = await said(provider)

    assert [p for p in pieces if isinstance(p, ProgressPiece)][-1] == ProgressPiece(600, 600)
    assert server.chats[0]["return_progress"] is True


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(text="one two", reset_after=1), "disconnected"),
        (Answer(text="one two", end_after=1), "stopped in the middle of the answer"),
        (
            Answer(text="one two", error_after=1, error="CUDA out of memory"),
            "in the middle of its answer: CUDA out of memory",
        ),
        (Answer(calls=[("read_file", {"path": "a.txt"})], error_after=1), "the model fell over"),  # the name came
        (Answer(calls=[("read_file", {"path": "a.txt"})], error_after=3), "the model fell over"),  # half a path too
        (Answer(text="one two", garbage_after=1), "not JSON"),
        (
            Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>Log in</p>"),
            "sent no answer. Check that provider.baseUrl is the address of its API",
        ),
        (Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "unreadable response"),
        (
            Answer(status=401, body={"error": {"message": "bad key"}}),
            "rejected the API key .*: bad key. Set provider.apiKeyEnv",
        ),
        (
            Answer(status=500, body={"detail": [{"msg": "boom\n\x1b[31m"}]}),
            r"failed \(HTTP 500\): boom .*\. Check its log",
        ),
        (Answer(status=307, body={}), "redirects"),
        (Answer(status=400, body=b"<html><b>Bad Gateway</b></html>"), "rejected the request .*: Bad Gateway"),
    ],
)
async def test_what_goes_wrong_is_one_clear_sentence(answer: Answer, sentence: str) -> None:
    async with ScriptedServer([answer, answer, answer, answer, answer]) as server:
        with pytest.raises(ModelError, match=sentence) as caught:
            await said(openai(server.base_url))

    assert caught.value.action
    assert "\n" not in str(caught.value)
    assert len(server.chats) == 1


async def test_an_old_server_that_ends_its_answer_by_closing_is_understood() -> None:
    events = b'data: {"choices":[{"delta":{"content":"old"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    raw = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events
    async with ScriptedServer([Answer(raw=raw), Answer(raw=raw)]) as server:
        provider = openai(server.base_url)
        assert [text_of(await said(provider)), text_of(await said(provider))] == ["old", "old"]


async def test_a_prompt_too_long_brings_the_numbers() -> None:
    error = {
        "code": 400,
        "message": "the request exceeds the available context size",
        "n_prompt_tokens": 9000,
        "n_ctx": 4096,
    }
    async with ScriptedServer([Answer(status=400, body={"error": error})]) as server:
        with pytest.raises(PromptTooLongError) as caught:
            await said(openai(server.base_url))

    assert (caught.value.prompt_tokens, caught.value.window) == (9000, 4096)


async def test_a_server_that_does_not_stream_is_understood_too() -> None:
    body = b'{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}'
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with ScriptedServer([Answer(raw=raw)]) as server:
        pieces = await said(openai(server.base_url))

    assert text_of(pieces) == "whole"
    assert pieces[-1] == FinishPiece("stop", Usage(prompt_tokens=3), counts_reuse=False)


@pytest.mark.parametrize(
    ("kind", "expected"), [("llama.cpp", 2048), ("vllm", 2048), ("lm-studio", 2048), ("other", None)]
)
async def test_the_window_served_is_found_where_the_server_tells_it(kind: str, expected: int | None) -> None:
    async with ScriptedServer(kind=kind, window=2048) as server:
        assert (await openai(server.base_url).describe("scripted")).window == expected


@pytest.mark.parametrize(("kind", "prompt"), [("llama.cpp", 4), ("vllm", 4), ("other", None)])
async def test_tokens_are_counted_where_the_server_can(kind: str, prompt: int | None) -> None:
    async with ScriptedServer(kind=kind) as server:
        assert await openai(server.base_url).count_prompt(ask("one two three four")) == prompt


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def fragment(arguments: Any = "", name: str = "", **more: Any) -> dict[str, Any]:
    return delta(tool_calls=[{"function": {"name": name, "arguments": arguments}, **more}])


def assemble(*chunks: dict[str, Any]) -> tuple[StreamAssembler, list[Any]]:
    assembler = StreamAssembler()
    return assembler, [piece for chunk in chunks for piece in assembler.add_chunk(chunk)]


def calls(*chunks: dict[str, Any]) -> list[tuple[str, Any]]:
    assembler, _ = assemble(*chunks)
    return [(piece.name, piece.arguments) for piece in assembler.finish() if isinstance(piece, CallPiece)]


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ([fragment('{"a"', "ls", index=0, id="x"), fragment(":1}", index=0)], [("ls", {"a": 1})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("{}", "b", index=1, id="y")], [("a", {}), ("b", {})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("{}", "b", index=0, id="y")], [("a", {}), ("b", {})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("{}", "b", index=0, id="x")], [("a", {}), ("b", {})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("", index=0, id="y")], [("a", {})]),
        ([fragment("{", "a", id="x"), fragment("}"), fragment("{}", "b", id="y")], [("a", {}), ("b", {})]),
        ([fragment("{", "a"), fragment("}")], [("a", {})]),
        ([fragment({"a": 1}, "ls", index=0)], [("ls", {"a": 1})]),
        ([fragment('{"a":', "ls", index=0)], [("ls", '{"a":')]),
        ([fragment(name="read_"), fragment(name="file")], [("read_file", {})]),
    ],
)
def test_calls_are_put_together_from_their_fragments(chunks: list[dict], found: list[tuple[str, Any]]) -> None:
    assert calls(*chunks) == found


def test_a_call_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_assembly, "MAX_CALL_CHARACTERS", 10)
    assembler, _ = assemble(fragment("12345678", "ls", index=0))
    with pytest.raises(ModelError) as caught:
        assembler.add_chunk(fragment("9", index=0))
    assert caught.value.message == "The model server sent a tool call that does not end."


def test_very_many_calls_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_assembly, "MAX_CALLS", 2)
    assembler, _ = assemble(fragment("{}", "a", index=0), fragment("{}", "b", index=1))
    with pytest.raises(ModelError):
        assembler.add_chunk(fragment("{}", "c", index=2))


messages = st.lists(
    st.builds(PromptMessage, role=st.sampled_from(["system", "user", "assistant"]), content=st.text(max_size=20))
)


@given(given_messages=messages)
def test_neighbours_of_the_user_are_joined_and_nothing_is_lost(given_messages: list[PromptMessage]) -> None:
    found = merge_user_messages(given_messages)

    pairs = pairwise(found)
    assert not [1 for one, other in pairs if one.role == other.role == "user"]
    everything = "\n\n".join(message.content for message in given_messages)
    assert "\n\n".join(message.content for message in found) == everything


def test_a_server_gets_them_joined() -> None:
    said = [PromptMessage(role="user", content="first"), PromptMessage(role="user", content="second")]

    body = build_chat_body(ChatRequest(model="m", messages=tuple(said), window=4096))

    assert [message["content"] for message in body["messages"]] == ["first\n\nsecond"]
