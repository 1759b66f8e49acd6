"""The first answer: given before the protocol's library is loaded, and the same as the library would give."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.acp.transport import build_introduction, is_plain_introduction
from tests.acp.editor import editing, raw_agent, variables


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"protocolVersion": "1"},
        {"protocolVersion": True},
        {"protocolVersion": -1},
        {"protocolVersion": 65_536},
        {"protocolVersion": 1, "clientCapabilities": 5},
        {"protocolVersion": 1, "clientCapabilities": {"fs": []}},
        {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": "yes"}}},
    ],
)
def test_what_is_not_plain_is_left_to_the_library(params: object) -> None:
    assert not is_plain_introduction(params)


async def test_the_first_answer_does_not_wait_for_the_library(tmp_path: Path) -> None:
    """The library is made so slow that only an answer without it can come in time."""
    slow = tmp_path / "slow" / "acp"
    slow.mkdir(parents=True)
    (slow / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    script = f"import sys; sys.path.insert(0, {str(slow.parent)!r}); from ollm.cli.entry import main; main(['acp'])"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables(tmp_path, "")
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":"one","method":"initialize","params":{"protocolVersion":1}}\n')
    try:
        async with asyncio.timeout(180):
            answer = json.loads(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()

    assert (answer["id"], answer["result"]) == ("one", build_introduction(1))


async def test_a_wrong_first_message_is_answered_and_the_next_is_right(tmp_path: Path) -> None:
    async with raw_agent(variables(tmp_path, "http://127.0.0.1:9")) as agent:
        agent.write(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
            {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 99}},
        )
        wrong, right = await agent.answer(1), await agent.answer(2)

    assert wrong["error"]["code"] == -32602
    assert right["result"] == build_introduction(99)


async def test_an_editor_can_say_again_what_it_can(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        found = await editor.agent.initialize(protocol_version=99)

    assert found.protocol_version == 1
