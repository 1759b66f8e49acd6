"""Files that an editor has open, and servers it brings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import schema as wire

from ollm.acp.transport import read_servers
from tests.acp.editor import EDIT, RunningEditor, editing
from tests.extensions.raw_servers import raw_entry, shown_tools
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

FILES = wire.ClientCapabilities(fs=wire.FileSystemCapabilities(read_text_file=True, write_text_file=True))

READ_ONLY = wire.ClientCapabilities(fs=wire.FileSystemCapabilities(read_text_file=True, write_text_file=False))

READ = Answer(calls=[("read_file", {"path": "a.txt"})])


def prepare_file(directory: Path) -> Path:
    file = directory / "project" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\ntwo\n")
    return file


async def test_unsaved_text_is_read_shown_and_changed_in_the_editor(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [READ, EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)] = "unsaved\ntwo\n"
        await editor.say(await editor.open(), "change it")

    change = editor.client.asked[0][0].content[0]
    assert (change.old_text, change.new_text) == ("unsaved\ntwo\n", "unsaved\nthree\n")
    assert editor.client.written == {str(file): "unsaved\nthree\n"}
    assert "unsaved" in str(server.chats[1])


async def test_a_write_that_the_editor_refuses_fails_and_the_disk_keeps_its_text(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)], editor.client.refuses = "unsaved\ntwo\n", True
        await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\ntwo\n"
    assert "The editor did not write a.txt" in str(server.chats[-1])


async def test_where_the_editor_only_reads_a_saved_file_is_written_and_unsaved_text_is_not_put_on_disk(
    tmp_path: Path,
) -> None:
    file = prepare_file(tmp_path)
    back = Answer(calls=[("edit_file", {"path": "a.txt", "edits": [{"target": "three", "replacement": "four"}]})])
    over = Answer(calls=[("write_file", {"path": "a.txt", "content": "new\n", "overwrite": True})])
    async with editing(tmp_path, [EDIT, "Done.", back, over, "I see."], "once", READ_ONLY) as (editor, server):
        session = await editor.open()
        editor.client.buffers[str(file)] = "one\ntwo\n"
        await editor.say(session, "change it")
        assert file.read_text() == "one\nthree\n"
        editor.client.buffers[str(file)] = "unsaved\nthree\n"
        await editor.say(session, "change it")

    assert (len(editor.client.asked), editor.client.written) == (1, {})  # what cannot be done is not asked about
    assert file.read_text() == "one\nthree\n"
    told = [message["content"] for message in server.chats[-1]["messages"] if message["role"] == "tool"]
    assert [text.count("a.txt has unsaved changes in the editor") for text in told] == [0, 1, 1]


async def test_a_file_the_editor_does_not_have_is_read_and_written_on_disk(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    new = Answer(calls=[("write_file", {"path": "deep/new.txt", "content": "x\n"})])
    async with editing(tmp_path, [READ, EDIT, new, "Done."], "once", FILES) as (editor, _):
        await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\nthree\n"
    assert (file.parent / "deep" / "new.txt").read_text() == "x\n"
    assert editor.client.written == {}


@pytest.mark.parametrize(
    ("given", "saves", "shown"),
    [
        ("new\ntwo\n", False, "new\nthree\n"),  # an editor with line ends of its own, as most are
        ("new\r\ntwo\r\n", False, "new\r\nthree\r\n"),
        ("one\ntwo\n", True, "one\r\nthree\r\n"),  # one that saves what it is given
    ],
)
async def test_line_ends_are_those_of_the_editor_and_the_file_keeps_its_own(
    tmp_path: Path, given: str, saves: bool, shown: str
) -> None:
    file = prepare_file(tmp_path)
    file.write_bytes(b"one\r\ntwo\r\n")
    async with editing(tmp_path, [EDIT, "Done."], "once", FILES) as (editor, _):
        editor.client.buffers[str(file)], editor.client.saves = given, saves
        await editor.say(await editor.open(), "change it")

    assert editor.client.buffers[str(file)] == shown
    assert file.read_bytes() == (b"one\r\nthree\r\n" if saves else b"one\r\ntwo\r\n")


async def test_the_editor_is_not_asked_for_what_the_boundary_refuses(tmp_path: Path) -> None:
    prepare_file(tmp_path)
    (tmp_path / "project" / ".env").write_text("KEY=1\n")
    outside = tmp_path / "outside.txt"
    outside.write_text("far\n")
    calls = Answer(calls=[("read_file", {"path": str(outside)}), ("read_file", {"path": ".env"})])
    async with editing(tmp_path, [calls, "Done."], "reject", FILES) as (editor, server):
        editor.client.buffers |= {str(outside): "far!\n", str(tmp_path / "project" / ".env"): "KEY=2\n"}
        await editor.say(await editor.open(), "read them")

    assert editor.client.read == []
    assert "far!" not in str(server.chats)
    assert "KEY=2" not in str(server.chats)


async def test_a_file_that_was_read_in_the_editor_is_not_written_on_disk_when_it_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [READ, "Read.", EDIT, "Done."], "once", FILES) as (editor, server):
        editor.client.buffers[str(file)] = "one\ntwo\n"
        session = await editor.open()
        await editor.say(session, "read it")
        monkeypatch.setattr("ollm.acp.client.READ_TIMEOUT_SECONDS", 0.05)
        editor.client.silent = True
        await editor.say(session, "change it")

    assert (file.read_text(), editor.client.written) == ("one\ntwo\n", {})
    assert "a.txt is open in the editor, which does not answer; not written" in str(server.chats[-1])


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
    assert "MCP server only cannot be used: expected either command or url." in said
    assert "MCP server server cannot be used: expected either command or url." in said
    assert "MCP server w cannot be used: url: expected a URL" in said
    assert "MCP server c cannot be used: expected either command or url" in said


@pytest.mark.parametrize("wrong", [{"args": 3}, {"env": [{"name": "A"}]}, {"env": [3]}])
def test_an_entry_with_parts_that_cannot_be_read_is_not_started(wrong: dict[str, Any]) -> None:
    assert read_servers([{"name": "a", "command": "run", **wrong}])[0] == {}
