"""A server that refuses a prompt as too long is believed: the conversation is folded to fit and asked again."""

import json
from pathlib import Path

from tests.cli.running import running
from tests.covers import covers
from tests.servers.answers import Answer

REFUSED = {
    "error": {
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 5200,
        "n_ctx": 3000,
    }
}


@covers("D612")
async def test_a_refused_prompt_is_folded_and_sent_again(tmp_path: Path) -> None:
    long = "word " * 900
    script: list[Answer | str] = [f"{long}one", Answer(status=400, body=REFUSED)]
    async with running(tmp_path, script, window=8192, kind="llama.cpp") as runner:
        await runner.run("-p", f"first {long}")
        done = await runner.run("-p", "second", "--continue", "-o", "json")

    answer = json.loads(done.out)
    assert answer["reason"] == "answered", done.err
    refused, *_, sent = (sum(len(m["content"] or "") for m in chat["messages"]) for chat in runner.server.chats[1:])
    assert sent < refused
    assert len(runner.sessions()[0]["messages"]) == 4


async def test_one_that_refuses_again_ends_the_turn_with_the_ways_out(tmp_path: Path) -> None:
    script = [Answer(status=400, body=REFUSED), Answer(status=400, body=REFUSED)]
    async with running(tmp_path, script, kind="llama.cpp") as runner:
        done = await runner.run("-p", "hello", "-o", "json")

    assert done.code == 1
    assert json.loads(done.out)["reason"] == "context-full"
