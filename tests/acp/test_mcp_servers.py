"""MCP servers that an editor sends: asked about before they start, remembered where the person wants it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import schema as wire

from ollm.acp.transport import complete_server, read_servers
from tests.acp.editor import RunningEditor, editing
from tests.extensions.raw_servers import raw_entry, shown_tools
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

TOOL = {"name": "greet", "description": "Greet.", "inputSchema": {"type": "object", "properties": {}}}


def started(directory: Path) -> bool:
    return (directory / "project" / "started").exists()


def server(directory: Path) -> wire.McpServerStdio:
    """A server of ours; that it was started is seen from a file it leaves."""
    entry = raw_entry(directory, "greeter", tools=[TOOL], log=str(directory / "project" / "started"))
    return wire.McpServerStdio(name="my tools", command=entry["command"], args=entry["args"], env=[])


async def open_with(editor: RunningEditor, found: wire.McpServerStdio) -> str:
    opened = await editor.agent.new_session(cwd=str(editor.workspace), mcp_servers=[found])
    return opened.session_id


async def wait_for_tool(editor: RunningEditor, session: str, chat: ScriptedServer, *, deadline: float = 120.0) -> None:
    """A turn goes on without a server that starts slowly: talk until the model is shown its tool."""
    async with asyncio.timeout(deadline):
        while not chat.chats or "my-tools__greet" not in shown_tools(chat.chats[-1]):
            await editor.say(session, "hi")
            await asyncio.sleep(0.2)


async def test_a_server_is_asked_about_and_its_tool_runs_when_allowed(tmp_path: Path) -> None:
    async with editing(tmp_path, [], "once", OLLM_CONTEXT_WINDOW="16384") as (editor, chat):
        session = await open_with(editor, server(tmp_path))
        assert not started(tmp_path)
        await wait_for_tool(editor, session, chat)
        chat.script = [Answer(calls=[("my-tools__greet", {})]), "Greeted."]
        await editor.say(session, "greet me")

    asked = [call.title for call, _ in editor.client.asked]
    assert asked[0].startswith("Start the MCP server my-tools: ")
    assert started(tmp_path)
    (call,) = editor.client.calls().values()
    assert call["status"] == "completed"
    assert len(asked) == 2  # the server, then its tool


async def test_a_server_that_is_refused_is_not_started_and_not_asked_about_again(tmp_path: Path) -> None:
    async with editing(tmp_path, [], "reject", OLLM_CONTEXT_WINDOW="16384") as (editor, chat):
        session = await open_with(editor, server(tmp_path))
        await editor.say(session, "hi")
        await editor.say(session, "hi")

    assert len(editor.client.asked) == 1
    assert not started(tmp_path)
    assert "my-tools__greet" not in shown_tools(chat.chats[-1])


async def test_a_server_allowed_for_good_is_not_asked_about_again_until_it_changes(tmp_path: Path) -> None:
    found = server(tmp_path)
    async with editing(tmp_path, [], "always") as (editor, _):
        await editor.say(await open_with(editor, found), "hi")
        await editor.say(await open_with(editor, found), "hi")
        assert len(editor.client.asked) == 1
        other = found.model_copy(update={"args": [*found.args, "--more"]})
        await editor.say(await open_with(editor, other), "hi")

    assert len(editor.client.asked) == 2


async def test_a_question_for_a_typed_text_is_declined_and_said(tmp_path: Path) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asks = {"greet": {"message": "Who are you?", "requestedSchema": form}}
    entry = raw_entry(tmp_path, "greeter", tools=[TOOL], asks=asks)
    found = wire.McpServerStdio(name="my tools", command=entry["command"], args=entry["args"], env=[])
    async with editing(tmp_path, [], "once", OLLM_CONTEXT_WINDOW="16384") as (editor, chat):
        session = await open_with(editor, found)
        await wait_for_tool(editor, session, chat)
        chat.script = [Answer(calls=[("my-tools__greet", {})]), "I see."]
        await editor.say(session, "greet me")

    assert "typed answer" in editor.client.said("agent_thought_chunk")


async def test_a_server_that_cannot_be_used_is_said_with_the_reason(tmp_path: Path) -> None:
    sent: list[Any] = [{"name": "only"}, {"name": "w", "type": "ws", "url": "ws://h"}, {"name": "c", "type": "acp"}, 3]
    async with editing(tmp_path, []) as (editor, _):
        given = {"cwd": str(editor.workspace), "mcpServers": sent}
        await editor.agent._conn.send_request("session/new", given)
        await editor.client.wait_for("agent_thought_chunk")
        await editor.agent.list_sessions()

    said = editor.client.said("agent_thought_chunk")
    assert "MCP server only cannot be used: it has no command." in said
    assert "MCP server server cannot be used: it has no command." in said
    assert "MCP server w cannot be used: servers of type ws are not supported" in said
    assert "MCP server c cannot be used: servers of type acp are not supported" in said


@pytest.mark.parametrize("wrong", [{"args": 3}, {"args": [3]}, {"env": {"A": "b"}}, {"env": [{"name": "A"}]}])
def test_an_entry_with_parts_that_cannot_be_read_is_not_started(wrong: dict[str, Any]) -> None:
    assert read_servers([complete_server({"name": "a", "command": "run", **wrong})]) == {}
