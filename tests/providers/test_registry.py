"""Providers by name, Ollama, and what is known of models."""

import asyncio
import time
from pathlib import Path

import pytest

from ollm.config.environment import Home
from ollm.config.settings import ProviderSettings, ProviderTimeouts
from ollm.domain.context import Usage
from ollm.domain.errors import (
    ExitCode,
    ModelError,
    ModelTimeoutError,
    NoServerError,
    ToolsUnsupportedError,
    UnknownModelError,
    UsageError,
)
from ollm.domain.messages import ImagePart, PromptMessage, ToolCall
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece, FinishPiece, ThinkingPiece
from ollm.providers.registry import ProviderRegistry, ServerLocation
from ollm.providers.window import choose_window
from tests.providers.conftest import ask, ollama, said, text_of
from tests.servers import Answer, OllamaServer, Request, ScriptedServer
from tests.servers.handled import serve_with


def registry(settings: ProviderSettings, home: Path, *places: ServerLocation, **environment: str) -> ProviderRegistry:
    return ProviderRegistry(settings, Home(root=home), environment, places)


def at(label: str, kind: str, url: str) -> ServerLocation:
    return ServerLocation(label, kind, url)


async def test_what_is_configured_is_taken_and_its_first_model_that_talks(tmp_path: Path) -> None:
    async with OllamaServer(["hi"], model="nomic-embed-text:latest", others=("qwen3:8b",)) as server:
        settings = ProviderSettings(type="ollama", base_url=server.base_url)
        choice = await registry(settings, tmp_path).choose()

        assert (choice.provider.name, choice.model) == ("ollama", "qwen3:8b")
        assert "configured" in choice.why
        assert text_of(await said(choice.provider, ask(model=choice.model))) == "hi"


async def test_a_named_model_costs_no_request_before_the_first(tmp_path: Path) -> None:
    async with ScriptedServer(["hi"]) as server:
        settings = ProviderSettings(type="openai", base_url=server.base_url, model="m", context_window=4096)
        choice = await registry(settings, tmp_path).choose()
        assert await choose_window(choice.provider, choice.model, settings) == (4096, "set by provider.contextWindow")
        assert server.requests == []


async def test_a_configured_server_that_does_not_answer_is_an_error_and_no_fall_back(
    tmp_path: Path, free_port: int
) -> None:
    async with OllamaServer() as other:
        for kind in ("ollama", "openai", None):
            settings = ProviderSettings(type=kind, base_url=f"http://127.0.0.1:{free_port}")
            with pytest.raises(NoServerError) as caught:
                await registry(settings, tmp_path, at("Ollama", "ollama", other.base_url)).choose()
            assert caught.value.exit_code is ExitCode.NO_SERVER
        assert other.requests == []


@pytest.mark.parametrize(("kind", "expected"), [(OllamaServer, "ollama"), (ScriptedServer, "openai")])
async def test_the_kind_of_a_configured_server_is_found_out(tmp_path: Path, kind: type, expected: str) -> None:
    async with kind() as server:
        choice = await registry(ProviderSettings(base_url=server.base_url), tmp_path).choose()

        assert (choice.provider.name, choice.model) == (expected, "scripted")


async def test_a_base_url_that_ends_in_a_version_is_an_openai_one(tmp_path: Path) -> None:
    async with ScriptedServer(["hi"]) as server:
        choice = await registry(ProviderSettings(base_url=f"{server.base_url}/v1/"), tmp_path).choose()
        assert text_of(await said(choice.provider)) == "hi"

    assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_servers_at_usual_places_are_asked_side_by_side_and_the_first_in_order_is_taken(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with (
        serve_with(silent) as port,
        ScriptedServer(model="b") as second,
        ScriptedServer(model="c") as third,
    ):
        places = [
            at("Ollama", "ollama", f"http://127.0.0.1:{port}"),
            at("LM Studio", "openai", second.base_url),
            at("llama.cpp", "openai", third.base_url),
        ]
        start = time.monotonic()
        choice = await registry(ProviderSettings(), tmp_path, *places).choose()

        assert (choice.model, choice.why) == ("b", "found LM Studio running")
        assert time.monotonic() - start < 1.9


async def test_the_server_that_has_the_named_model_is_taken(tmp_path: Path) -> None:
    async with OllamaServer(model="a:latest") as first, ScriptedServer(model="b") as second:
        places = [at("Ollama", "ollama", first.base_url), at("llama.cpp", "openai", second.base_url)]

        for model, name in (("b", "openai"), ("a", "ollama"), ("c", "ollama")):
            choice = await registry(ProviderSettings(model=model), tmp_path, *places).choose()
            assert (choice.provider.name, choice.model) == (name, model)
        with pytest.raises(UnknownModelError, match="no model 'c'"):
            await choose_window(choice.provider, "c", ProviderSettings())


async def test_a_server_without_models_and_a_stranger_at_the_port_are_passed_over(tmp_path: Path) -> None:
    stranger = Answer(status=200)
    async with OllamaServer(model="") as empty, OllamaServer() as odd, ScriptedServer([stranger], model="good") as good:
        places = [
            at("Ollama", "ollama", empty.base_url),
            at("LM Studio", "openai", odd.base_url),
            at("llama.cpp", "openai", good.base_url),
        ]
        choice = await registry(ProviderSettings(), tmp_path, *places).choose()

        assert choice.model == "good"


async def test_a_server_that_still_loads_its_model_is_waited_for(tmp_path: Path) -> None:
    loading = {"error": {"message": "Loading model", "code": 503}}

    class Slow(ScriptedServer):
        left_to_refuse = 3

        def page(self, request: Request) -> tuple[int, object]:
            self.left_to_refuse -= 1
            return (503, loading) if self.left_to_refuse >= 0 else super().page(request)

    async with Slow(kind="llama.cpp", window=1234) as server:
        choice = await registry(ProviderSettings(), tmp_path, at("llama.cpp", "openai", server.base_url)).choose()
        assert choice.model == "scripted"
        server.left_to_refuse = 1
        named = ProviderSettings(type="openai", base_url=server.base_url, model="m")
        choice = await registry(named, tmp_path).choose()
        assert (await choose_window(choice.provider, "m", named))[0] == 1234


async def test_nothing_of_the_wanted_type_says_where_it_was_looked_for(tmp_path: Path, free_port: int) -> None:
    place = at("LM Studio", "openai", f"http://127.0.0.1:{free_port}")
    with pytest.raises(NoServerError, match=f"No openai server is running at {place.url}"):
        await registry(ProviderSettings(type="openai"), tmp_path, place).choose()


async def test_a_configured_server_without_models_says_so(tmp_path: Path) -> None:
    async with OllamaServer(model="") as server:
        with pytest.raises(ModelError, match="has no model"):
            await registry(ProviderSettings(type="ollama", base_url=server.base_url), tmp_path).choose()


async def test_the_key_is_taken_by_name_and_sent_to_the_configured_server_only(tmp_path: Path) -> None:
    async with ScriptedServer(["x"]) as server:
        settings = ProviderSettings(base_url=f"{server.base_url}/v1", api_key_env="MY_KEY")
        choice = await registry(settings, tmp_path, MY_KEY="abc").choose()
        await said(choice.provider)
        assert {request.headers.get("authorization") for request in server.requests} == {"Bearer abc"}
        server.requests.clear()
        settings = ProviderSettings(api_key="abc")
        await registry(settings, tmp_path, at("LM Studio", "openai", server.base_url)).choose()
        assert {request.headers.get("authorization") for request in server.requests} == {None}
        with pytest.raises(UsageError, match="MY_KEY, but that variable is not set"):
            await registry(ProviderSettings(base_url=server.base_url, api_key_env="MY_KEY"), tmp_path).choose()


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/api"])
async def test_an_ollama_address_may_end_as_people_write_it(tmp_path: Path, ending: str) -> None:
    async with OllamaServer(["hi"]) as server:
        settings = ProviderSettings(type="ollama", base_url=server.base_url + ending)
        choice = await registry(settings, tmp_path).choose()
        assert text_of(await said(choice.provider)) == "hi"


async def test_everything_lists_usual_places_and_the_configured_one(tmp_path: Path) -> None:
    async with OllamaServer(model="a") as first, ScriptedServer(model="b") as second:
        settings = ProviderSettings(base_url=second.base_url)
        found = await registry(settings, tmp_path, at("Ollama", "ollama", first.base_url)).list_servers(print)

        assert [(server.place.label, server.models[0].name) for server in found][:2] == [
            ("configured", "b"),
            ("Ollama", "a"),
        ]


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
    assert pieces[-1] == FinishPiece("tool_calls", Usage(prompt_tokens=20, completion_tokens=5), counts_reuse=False)


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
    request = ask(messages=messages, tools=(LS,), max_tokens=9, temperature=0.5, response_schema=schema)
    async with OllamaServer(["ok"]) as server:
        await said(ollama(server.base_url), request)

    body = server.chats[0]
    assert body["messages"] == [
        {"role": "user", "content": "See", "images": ["AAAA"]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "ls", "arguments": {"path": "."}}}]},
        {"role": "tool", "content": "a.txt", "tool_name": "ls"},
    ]
    assert body["tools"][0]["function"] == {"name": "ls", "description": "List.", "parameters": schema}
    assert body["options"] == {"num_ctx": 8192, "num_predict": 9, "temperature": 0.5}
    assert body["format"] == schema


async def test_a_missing_model_brings_the_nearest_there_is() -> None:
    async with OllamaServer(model="qwen3:8b", others=("llama3.2:latest",)) as server:
        with pytest.raises(UnknownModelError, match=r"no model 'qwen3:7b'\. Did you mean 'qwen3:8b'") as caught:
            await said(ollama(server.base_url), ask(model="qwen3:7b"))
        with pytest.raises(UnknownModelError, match=r"Did you mean 'llama3.2'"):
            await ollama(server.base_url).describe("lama3.2")

    assert caught.value.exit_code is ExitCode.MODEL_FAILED


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
    async with OllamaServer(["x", "y"], trained=32768) as server:
        provider = ollama(server.base_url)

        assert (await choose_window(provider, "scripted", ProviderSettings()))[0] == 8192
        await said(provider, ask(window=9000))
        assert (await choose_window(provider, "scripted", ProviderSettings()))[0] == 9000
        await said(provider, ask(window=4096))
        again = await choose_window(provider, "scripted", ProviderSettings())
        assert (again[0], "reloads the model, loaded with 4096" in again[1]) == (8192, True)
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
