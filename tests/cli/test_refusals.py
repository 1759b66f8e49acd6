"""What servers refuse, in words noted down from them, sent to the command: each is taken for what it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import PromptTooLongError
from ollm.providers.server_errors import make_server_error
from ollm.system.http import FullResponse
from tests.cli.running import running
from tests.servers.answers import Answer

RECORDED = json.loads((Path(__file__).parents[1] / "providers" / "answers" / "refusals.json").read_text("utf-8"))
FENCE = '```json\n{"name": "read_file", "arguments": {"path": "note.txt"}}\n```'


def select(means: str) -> list[Any]:
    return [
        pytest.param(entry, id=f"{entry['server']} {entry['version']} {number}")
        for number, entry in enumerate(RECORDED)
        if entry["means"] == means
    ]


@pytest.mark.parametrize("entry", select("tools-unsupported"))
async def test_a_server_started_without_tool_calls_works_and_says_once_how_to_have_them(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    refused = Answer(status=entry["status"], body=entry["body"])
    async with running(tmp_path, [refused, FENCE, "It says 4711.", FENCE, "Still 4711."]) as runner:
        (runner.workspace / "note.txt").write_text("the code is 4711\n")
        first = await runner.run("-p", "what does note.txt say?")
        second = await runner.run("-p", "and now?")

    assert (first.code, first.out.strip()) == (0, "It says 4711.")
    assert (second.code, second.out.strip()) == (0, "Still 4711.")
    assert first.err.count("--enable-auto-tool-choice") == 1
    assert "--enable-auto-tool-choice" not in second.err
    assert ["tools" in chat for chat in runner.server.chats] == [True, False, False, False, False]


@pytest.mark.parametrize("entry", select("tools-unsupported"))
async def test_the_probe_does_not_stop_at_a_server_without_tool_calls(tmp_path: Path, entry: dict[str, Any]) -> None:
    def answer(request: Any) -> Answer:
        return Answer(status=entry["status"], body=entry["body"]) if request.body.get("tools") else Answer(text=FENCE)

    async with running(tmp_path, []) as runner:
        runner.server.script = answer
        done = await runner.run("models", "probe", "--json")

    assert done.code == 0, done.err
    (facts,) = json.loads((runner.home / "model-facts.json").read_text()).values()
    assert (facts["takesTools"], facts["callForm"]) == (False, "text")


@pytest.mark.parametrize("entry", select("too-long"))
def test_the_numbers_of_an_overflow_are_read_from_the_words(entry: dict[str, Any]) -> None:
    error = make_server_error("http://x", FullResponse(entry["status"], {}, json.dumps(entry["body"]).encode()))

    assert isinstance(error, PromptTooLongError)
    assert (error.window, error.prompt_tokens) == (entry["window"], entry["prompt"])
    assert (error.answer_tokens, error.prompt_at_least) == (entry["answer"], entry.get("atLeast", False))
    assert error.only_answer_too_long == (entry["answer"] > 0)


@pytest.mark.parametrize("entry", select("unknown-model"))
async def test_an_unknown_model_is_named_with_the_nearest_there_is(tmp_path: Path, entry: dict[str, Any]) -> None:
    refused = Answer(status=entry["status"], body=entry["body"])
    async with running(tmp_path, [refused], models=("scripted-7b",)) as runner:
        done = await runner.run("-p", "hi")

    assert done.code == 4
    assert "Did you mean 'scripted-7b'?" in done.err
