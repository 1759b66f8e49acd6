"""Request settings of a model: what the server is sent, what is shown, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.app.conversation import open_conversation
from ollm.domain.errors import UsageError
from ollm.runtime.base import ConversationOptions
from tests.cli.running import Runner, running
from tests.servers.answers import Answer
from tests.servers.ollama import OllamaServer

SAMPLING = {"temperature": 0.3, "topP": 0.9, "topK": 20, "minP": 0.05, "repeatPenalty": 1.1, "seed": 7, "stop": ["END"]}
SENT = {"temperature": 0.3, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "seed": 7, "stop": ["END"]}
THINKS = {"enable_thinking": False, "thinking": False}


def configure(runner: Runner, **sections: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps(sections))


def pick(body: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {key: body.get(key) for key in expected}


@pytest.mark.parametrize(
    ("kind", "settings", "sent"),
    [
        ("other", SAMPLING, {**SENT, "repetition_penalty": 1.1, "chat_template_kwargs": None}),
        ("llama.cpp", SAMPLING, {**SENT, "repeat_penalty": 1.1}),
        ("llama.cpp", {"thinking": "off"}, {"chat_template_kwargs": THINKS, "temperature": None}),
        (
            "vllm",
            {"thinking": "off", "thinkingBudget": 9},
            {"chat_template_kwargs": THINKS, "thinking_token_budget": 9},
        ),
        ("llama.cpp", {"thinkingBudget": 0}, {"thinking_budget_tokens": 0}),
        ("llama.cpp", {"reasoningEffort": "low"}, {"chat_template_kwargs": {"reasoning_effort": "low"}}),
        ("sglang", {"thinkingBudget": 5}, {"chat_template_kwargs": {"thinking_budget": 5}}),
        ("lm-studio", {"thinking": "off"}, {"reasoning_effort": "none", "chat_template_kwargs": None}),
        ("vllm", {"reasoningEffort": "high"}, {"reasoning_effort": "high"}),
        (
            "vllm",
            {"thinking": "off", "extra": {"priority": 1, "chat_template_kwargs": {"x": 1}}},
            {"priority": 1, "chat_template_kwargs": {**THINKS, "x": 1}},
        ),
    ],
)
async def test_each_kind_of_server_is_sent_the_fields_it_takes(
    tmp_path: Path, kind: str, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    async with running(tmp_path, ["Hello."], kind=kind) as runner:
        configure(runner, models={"scripted": settings}, provider={"contextWindow": 8192})
        done = await runner.run("-p", "hi")

    assert done.code == 0, done.err
    assert pick(runner.server.chats[0], sent) == sent


async def test_ollama_is_sent_options_and_think_and_shows_its_own(tmp_path: Path) -> None:
    async with OllamaServer(["Hello."], model="qwen3:8b") as server:
        runner = Runner(tmp_path, server)  # type: ignore[arg-type]
        configure(runner, models={"qwen3*": {**SAMPLING, "thinking": "off", "extra": {"keep_alive": "1h"}}})
        asked = {"OLLM_PROVIDER": "ollama", "OLLM_MODEL": "qwen3:8b"}
        done = await runner.run("-p", "hi", **asked)
        shown = await runner.run("-p", "/model", **asked)

    assert done.code == 0, done.err
    options = {**SENT, "repeat_penalty": 1.1}
    assert pick(server.chats[0]["options"], options) == options
    assert (server.chats[0]["think"], server.chats[0]["keep_alive"]) == (False, "1h")
    assert "The server's own: temperature 0.6." in shown.out


async def test_the_word_no_think_stands_at_the_end_of_the_first_message(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, models={"default": {"thinking": "/no_think"}})
        await runner.run("-p", "hi")

    assert runner.server.chats[0]["messages"][0]["content"].endswith("\n\n/no_think")


async def test_a_name_wins_over_a_glob_and_a_glob_over_the_default(tmp_path: Path) -> None:
    entries = {
        "scripted": {"temperature": 0.1, "extra": {"c": 3}},
        "scr*": {"temperature": 0.2, "topP": 0.5, "extra": {"b": 2}},
        "default": {"temperature": 0.3, "topP": 0.6, "seed": 4, "extra": {"a": 1}},
        "other*": {"topK": 5},
    }
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, models=entries)
        await runner.run("-p", "hi")

    expected = {"temperature": 0.1, "top_p": 0.5, "seed": 4, "top_k": None, "a": 1, "b": 2, "c": 3}
    assert pick(runner.server.chats[0], expected) == expected


async def test_without_settings_nothing_more_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, models={"another": SAMPLING})
        await runner.run("-p", "hi")

    assert not {"temperature", "top_p", "seed", "chat_template_kwargs"} & {*runner.server.chats[0]}


async def test_context_shows_what_is_sent_and_not_what_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        configure(runner, models={"default": {"thinking": "off", "reasoningEffort": "high"}})
        await runner.run("-p", "hi")
        context = await runner.run("context", "show", "--json")

    assert runner.server.chats[0]["reasoning_effort"] == "none"
    assert json.loads(context.out)["requestSettings"] == {"thinking": "off"}


async def test_headers_go_to_the_server_and_their_secrets_nowhere_else(tmp_path: Path) -> None:
    secret = "gate-4711-4711"
    failure = Answer(status=400, body={"error": {"message": f"bad X-Gate {secret}, X-Team team-blue-1"}})
    async with running(tmp_path, ["Hello.", failure]) as runner:
        configure(runner, models={"default": {"headers": {"X-Gate": "${GATE}", "X-Team": "team-blue-1"}}})
        done = await runner.run("-p", "hi", GATE=secret, OLLM_PROVIDER="", OLLM_MODEL="")
        failed = await runner.run("-p", "hi", "--debug", GATE=secret)
        shown = await runner.run("config", "show")
        context = await runner.run("context", "show", "--json", GATE=secret)
        missing = await runner.run("-p", "hi")

    assert "/api/version" in {request.path for request in runner.server.requests}
    sent = {(request.headers.get("x-gate"), request.headers.get("x-team")) for request in runner.server.requests}
    assert sent == {(secret, "team-blue-1")}
    kept = "".join(path.read_text(errors="replace") for path in runner.home.rglob("*") if path.is_file())
    assert secret not in done.out + done.err + failed.out + failed.err + kept
    assert "team-blue" not in shown.out + failed.out + failed.err
    assert json.loads(context.out)["requestSettings"] == {"headers": ["X-Gate", "X-Team"]}
    assert missing.code == 2
    assert "GATE" in missing.err


async def test_a_bad_value_is_reported_with_its_place_and_not_sent(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(
            "models:\n  scripted:\n    temperature: warm\n    top_p: 1\n    seed: 3\n    extra: {model: x}\n"
            "    headers: s3cret-text\n"
        )
        done = await runner.run("-p", "hi")
        checked = await runner.run("config", "check")

    assert "config.yaml:3" in checked.out
    assert "models.scripted.temperature: expected a number" in checked.out
    assert "did you mean models.scripted.topP?" in checked.out
    assert "models.scripted.extra.model: ollm sets this field itself" in checked.out
    assert "s3cret" not in checked.out + checked.err
    assert checked.code == 2
    assert done.code == 0
    assert pick(runner.server.chats[0], {"temperature": 0, "seed": 0, "model": ""}) == {
        "temperature": None,
        "seed": 3,
        "model": "scripted",
    }


async def test_a_workspace_sets_none_of_it(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        (runner.workspace / ".ollm").mkdir()
        theirs = {"models": {"default": {"extra": {"x": 1}, "headers": {"X-Evil": "1"}}}}
        (runner.workspace / ".ollm" / "config.yaml").write_text(json.dumps(theirs))
        await runner.run("trust")
        done = await runner.run("-p", "hi")

    assert "x" not in runner.server.chats[0]
    assert not any("x-evil" in request.headers for request in runner.server.requests)
    assert "models.default.extra: can only be set in your own config file" in done.err


async def test_config_set_and_get_take_a_name_with_dots(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner:
        done = await runner.run("config", "set", "models.qwen2.5-coder:7b.temperature", "0.2")
        got = await runner.run("config", "get", "models.qwen2.5-coder:7b.temperature")
        bad = await runner.run("config", "set", "models.qwen2.5-coder:7b.temperature", "-1")
        schema = json.loads((await runner.run("config", "schema")).out)

    assert (done.code, got.out.strip(), bad.code) == (0, "0.2", 2)
    models = schema["$defs"]["Settings"]["properties"]["models"]
    assert models["additionalProperties"] == {"$ref": "#/$defs/ModelSettings"}
    assert "urls" in models["properties"]


async def test_a_setting_changed_in_the_chat_holds_from_the_next_request_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, ["One.", "Two."], kind="llama.cpp") as runner:
        configure(runner, models={"default": {"topP": 0.7}})
        for name in ("OLLM_HOME", "OLLM_BASE_URL", "OLLM_PROVIDER", "OLLM_MODEL"):
            monkeypatch.setenv(name, runner.environment()[name])
        async with open_conversation(ConversationOptions(workspace=runner.workspace)) as conversation:
            changed = (await conversation.command("model", "set temperature 0.4")).text
            async with conversation.turn("hi") as events:
                assert [event async for event in events]
            await conversation.command("model", "unset topP")
            for wrong in ("set", "set headers {}", "set temperature", "set temperature warm", "unset nonsense"):
                with pytest.raises(UsageError):
                    await conversation.command("model", wrong)
            told = (await conversation.command("model")).text
            async with conversation.turn("hi again") as events:
                assert [event async for event in events]
        shown = await runner.run("context", "show")

    assert [(body["temperature"], body.get("top_p")) for body in runner.server.chats] == [(0.4, 0.7), (0.4, None)]
    assert "ollm config set models.scripted.temperature 0.4" in changed
    assert "Sent with every request: temperature 0.4." in told
    assert "The server's own: temperature 0.8, topK 40." in told
    assert "Sent with every request to scripted: topP 0.7." in shown.out
