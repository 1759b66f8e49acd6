"""`ollm doctor` and `-p` with servers that refuse, guess or serve something else than was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer


class OddServer(ScriptedServer):
    """Answers some of its pages with something of its own."""

    def __init__(self, pages: dict[str, tuple[int, Any]], script: Any = (), **options: Any) -> None:
        super().__init__(script, **options)
        self.pages = pages

    def page(self, request: Request) -> tuple[int, Any]:
        return self.pages.get(request.path) or super().page(request)


def refusal(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


async def run(tmp_path: Path, server: OddServer, *arguments: str, **variables: str) -> Any:
    async with server:
        runner = Runner(tmp_path, server)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"provider": dict(variables)}))
        environment = runner.environment()
        if variables.get("model") == "":
            environment.pop("OLLM_MODEL")
        runner.environment = lambda: environment  # type: ignore[method-assign]
        return await runner.run(*arguments)


@pytest.mark.parametrize(
    ("status", "said"), [(401, "rejected the API key"), (500, "failed (HTTP 500)"), (403, "rejected the API key")]
)
@pytest.mark.parametrize("model", ["scripted", ""])
async def test_a_refused_list_of_models_is_no_empty_one(tmp_path: Path, status: int, said: str, model: str) -> None:
    server = OddServer({"/v1/models": (status, refusal("no"))})
    done = await run(tmp_path, server, "doctor", model=model)

    assert done.code == 4
    assert said in done.out


async def test_a_server_without_a_list_is_used(tmp_path: Path) -> None:
    done = await run(tmp_path, OddServer({"/v1/models": (404, refusal("Not Found"))}), "doctor")

    assert done.code == 0
    assert "does not say its context window" in done.out
    assert "serve 8,192 tokens" not in done.out


async def test_a_model_that_is_not_on_the_list_is_named_by_doctor(tmp_path: Path) -> None:
    done = await run(tmp_path, OddServer({}, kind="vllm", models=("scripted-7b",)), "doctor")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.out


async def test_a_refusal_in_any_words_is_held_against_the_list(tmp_path: Path) -> None:
    refused = Answer(status=400, body={"detail": "we do not serve this one"})
    done = await run(tmp_path, OddServer({}, [refused], models=("scripted-7b",)), "-p", "hi")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.err


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/model/info", {"data": [{"model_name": "scripted", "model_info": {"max_input_tokens": 12288}}]}),
        ("/info", {"model_id": "x", "max_total_tokens": 12288, "max_input_tokens": 12000}),
    ],
)
async def test_the_window_is_asked_for_where_proxies_say_it(tmp_path: Path, path: str, page: Any) -> None:
    done = await run(tmp_path, OddServer({path: (200, page)}), "doctor", "--json")

    assert json.loads(done.out)["server"]["window"] == 12288


async def test_a_window_above_the_served_one_is_told(tmp_path: Path) -> None:
    server = OddServer({}, kind="vllm", window=8192)
    done = await run(tmp_path, server, "doctor", contextWindow=32768)  # type: ignore[arg-type]

    assert "the server gives 8192" in done.out


async def test_speed_through_a_prompt_cache_nobody_counts_is_no_speed(tmp_path: Path) -> None:
    class Silent(OddServer):
        def events(self, answer: Answer, request: Request) -> list[bytes]:
            return [event.replace(b'"prompt_tokens_details": {"cached_tokens": 0}', b'"prompt_tokens_details": null')
                    for event in super().events(answer, request)]  # fmt: skip

    script = [Answer(text="word " * 40, delay=0.4, pace=0.02, prompt_tokens=3000, completion_tokens=40)]
    await run(tmp_path, Silent({}, script), "-p", "hi")

    (facts,) = json.loads((tmp_path / "home" / "model-facts.json").read_text()).values()
    assert facts.get("prefillPerSecond") is None
    assert facts["decodePerSecond"] > 0
