"""A model's own language: what a server gave with an answer goes back to it in the same form."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.servers.answers import Answer

READ = {"name": "read_file", "arguments": '{"path": "a.txt"}'}


def call(identity: Any, index: int = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": identity, "type": "function", "function": READ}]}


def wire_ids(chat: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids of calls and of results, as the server reads them."""
    asked = [each["id"] for message in chat["messages"] for each in message.get("tool_calls") or ()]
    return asked, [message["tool_call_id"] for message in chat["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["Ab3dE6gH9", "functions.read_file:1"], ["Ab3dE6gH9", "functions.read_file:1"]),
        (["call_0", "call_0"], ["call_0", "c00000002"]),
        (["", None], ["c00000001", "c00000002"]),
        (["x" * 500, 7], ["c00000001", "c00000002"]),
    ],
)
async def test_a_call_and_its_result_carry_the_id_that_the_server_gave(
    tmp_path: Path, given: list[Any], sent: list[str]
) -> None:
    script = [*(Answer(deltas=[call(identity)], reason="tool_calls") for identity in given), "One.", "Two."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        first = await runner.run("-p", "Read a.txt twice")
        second = await runner.run("-p", "And now?", "--continue")

    assert (first.code, second.code) == (0, 0)
    assert wire_ids(runner.server.chats[2]) == (sent, sent)
    assert wire_ids(runner.server.chats[3]) == (sent, sent), "the same after a resume"
    assert [record["id"] for record in runner.sessions()[0]["toolCalls"]] == ["c1", "c2"]


async def test_a_session_without_the_server_ids_goes_on(tmp_path: Path) -> None:
    script = [Answer(deltas=[call("Ab3dE6gH9")], reason="tool_calls"), "One.", "Two."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("hello\n")
        await runner.run("-p", "Read a.txt")
        (document,) = (runner.home / "sessions").glob("*.json")
        document.write_text(document.read_text().replace(',"wireId":"Ab3dE6gH9"', ""))
        done = await runner.run("chat", "--continue", "--full", stdin="And now?")

    assert done.code == 0
    assert "Ab3dE6gH9" not in document.read_text()
    assert wire_ids(runner.server.chats[2]) == (["c00000001"], ["c00000001"])
