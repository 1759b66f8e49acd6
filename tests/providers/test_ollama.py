"""Ollama, spoken to on real sockets."""

from __future__ import annotations

import pytest

from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.errors import ExitCode, ModelError, ModelTimeoutError, ToolsUnsupportedError, UnknownModelError
from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece, FinishPiece, ThinkingPiece
from ollm.providers.window import choose_window
from tests.providers.conftest import ask, ollama, said, text_of
from tests.servers import Answer, OllamaServer

WISE = "Grüße, 世界 🌍\u2028 and\x85 more"
LS = ToolSchema(name="ls", description="List.", parameters={"type": "object"})


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
async def test_text_thinking_and_calls_come_whole_wherever_chunks_are_cut(size: int) -> None:
    answer = Answer(thinking="Hm 思", text=WISE, calls=[("ls", {"path": "ü"})], piece_bytes=size)
    async with OllamaServer([answer]) as server:
        pieces = await said(ollama(server.base_url))

    assert [p.text for p in pieces if isinstance(p, ThinkingPiece)] == ["Hm", " 思"]
    assert text_of(pieces) == WISE
    assert pieces[-2] == CallPiece("ls", {"path": "ü"})
    assert pieces[-1] == FinishPiece("tool_calls", Usage(prompt_tokens=20, completion_tokens=5))


async def test_the_window_is_sent_on_every_request_so_the_model_is_loaded_once() -> None:
    async with OllamaServer(["a", "b", "c"]) as server:
        provider = ollama(server.base_url)
        for _ in range(3):
            await said(provider, ask(window=6000))

    assert server.loads == [("scripted", 6000)]
    assert [chat["options"]["num_ctx"] for chat in server.chats] == [6000] * 3
    assert server.connections == 1


async def test_the_request_holds_tools_calls_results_images_and_limits() -> None:
    messages = (
        PromptMessage(role="user", content="See", images=(ImagePart(media_type="image/png", data="AAAA"),)),
        PromptMessage(role="assistant", content="", calls=(ToolCall(id="c1", name="ls", arguments={"path": "."}),)),
        PromptMessage(role="tool", content="a.txt", call_id="c1", tool_name="ls"),
    )
    schema = {"type": "object"}
    request = ask(messages=messages, tools=(LS,), max_tokens=9, temperature=0.5, stop=("X",), response_schema=schema)
    async with OllamaServer(["ok"]) as server:
        await said(ollama(server.base_url), request)

    body = server.chats[0]
    assert body["messages"] == [
        {"role": "user", "content": "See", "images": ["AAAA"]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "ls", "arguments": {"path": "."}}}]},
        {"role": "tool", "content": "a.txt", "tool_name": "ls"},
    ]
    assert body["tools"][0]["function"] == {"name": "ls", "description": "List.", "parameters": schema}
    assert body["options"] == {"num_ctx": 8192, "num_predict": 9, "temperature": 0.5, "stop": ["X"]}
    assert body["format"] == schema


async def test_a_missing_model_brings_the_nearest_there_is() -> None:
    async with OllamaServer(model="qwen3:8b", others=("llama3.2:latest",)) as server:
        with pytest.raises(UnknownModelError, match=r"no model 'qwen3:7b'\. Did you mean 'qwen3:8b'") as caught:
            await said(ollama(server.base_url), ask(model="qwen3:7b"))
        with pytest.raises(UnknownModelError, match=r"Did you mean 'llama3.2:latest'"):
            await ollama(server.base_url).describe("lama3.2")

    assert caught.value.exit_code is ExitCode.MODEL_FAILED


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            Answer(text="one two", error_after=1, error="llama runner terminated"),
            r"in the middle of its answer: llama runner terminated",
        ),
        (Answer(text="one two", reset_after=1), "disconnected"),
        (Answer(text="one two", end_after=1), "stopped in the middle of the answer"),
        (Answer(text="one two", garbage_after=1), "not JSON"),
        (Answer(status=500, body={"error": "model requires more system memory"}), "more system memory"),
    ],
)
async def test_what_goes_wrong_is_one_clear_sentence(answer: Answer, sentence: str) -> None:
    async with OllamaServer([answer]) as server:
        with pytest.raises(ModelError, match=sentence) as caught:
            await said(ollama(server.base_url))

    assert caught.value.action


async def test_a_model_without_tools_is_told_by_its_own_error() -> None:
    async with OllamaServer(["x"], capabilities=("completion",)) as server:
        with pytest.raises(ToolsUnsupportedError):
            await said(ollama(server.base_url), ask(tools=(LS,)))


async def test_a_call_that_is_held_back_until_it_is_whole_is_no_stall() -> None:
    answer = Answer(text="Writing", calls=[("ls", {})], pace=0.5)
    timeouts = ProviderTimeouts(connect=1, first_token=3, stall=0.2)
    async with OllamaServer([answer, answer]) as server:
        assert CallPiece("ls", {}) in await said(ollama(server.base_url, timeouts), ask(tools=(LS,)))
        with pytest.raises(ModelTimeoutError, match="stopped sending"):
            await said(ollama(server.base_url, timeouts))


async def test_the_window_is_what_is_loaded_else_at_most_8192_else_what_is_set() -> None:
    async with OllamaServer(["x"], trained=32768) as server:
        provider = ollama(server.base_url)

        assert (await choose_window(provider, "scripted", ProviderSettings()))[0] == 8192
        await said(provider, ask(window=5000))
        assert (await choose_window(provider, "scripted", ProviderSettings()))[0] == 5000
        assert (await choose_window(provider, "scripted", ProviderSettings(context_window=12345)))[0] == 12345
    async with OllamaServer(trained=2048) as server:
        assert (await choose_window(ollama(server.base_url), "scripted", ProviderSettings()))[0] == 2048


async def test_models_and_what_they_can_do_are_listed() -> None:
    async with OllamaServer(
        model="a:1b", others=("b:latest",), capabilities=("completion", "vision", "thinking")
    ) as server:
        provider = ollama(server.base_url)

        assert [info.name for info in await provider.models()] == ["a:1b", "b:latest"]
        info = await provider.describe("b")
    assert (info.vision, info.thinking, info.tools, info.trained_window) == (True, True, False, 32768)
