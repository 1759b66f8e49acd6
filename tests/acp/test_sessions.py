"""The sessions of an editor: several in one folder, listed, loaded after a crash, refused where they cannot be had."""

import asyncio
import signal
from pathlib import Path

import pytest
from acp import RequestError

from tests.acp.editor import editing, open_editor, variables
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


async def test_two_sessions_work_side_by_side_in_one_folder(tmp_path: Path) -> None:
    long = Answer(text="first " * 4000, pace=0.05)
    async with editing(tmp_path, [long, "second"]) as (editor, _):
        one, two = await editor.open(), await editor.open()
        slow = asyncio.create_task(editor.say(one, "go"))
        await editor.client.wait_for("agent_message_chunk")
        await editor.say(two, "go")
        assert not slow.done()
        await editor.agent.cancel(session_id=one)
        await slow

    said = {update["sessionId"] for update in editor.client.updates if update["sessionUpdate"] == "agent_message_chunk"}
    assert said == {one, two}


async def test_a_session_is_loaded_after_the_agent_was_killed(tmp_path: Path) -> None:
    script = ["Kept.", Answer(text="lost " * 4000, pace=0.05)]
    async with ScriptedServer(script) as server:
        environment = variables(tmp_path, server.base_url)
        async with open_editor(tmp_path, environment) as editor:
            session = await editor.open()
            await editor.say(session, "remember this")
            saying = asyncio.create_task(editor.say(session, "and talk"))
            while "lost" not in editor.client.said():
                await asyncio.sleep(0.01)
            assert editor.process is not None
            editor.process.send_signal(signal.SIGKILL)
            await editor.process.wait()
            with pytest.raises(ConnectionError):
                await saying
        server.script = ["Still here."]
        async with open_editor(tmp_path, environment) as editor:
            await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
            told = editor.client.said("user_message_chunk"), editor.client.said()
            ended = await editor.say(session, "go on")

    assert told[0] == "remember thisand talk"
    assert told[1].startswith("Kept.")
    assert ended.stop_reason == "end_turn"
    assert "remember this" in str(server.chats[-1])


async def test_a_session_that_is_open_elsewhere_is_refused(tmp_path: Path) -> None:
    async with editing(tmp_path, ["Hello."]) as (editor, server):
        session = await editor.open()
        await editor.say(session, "hi")
        async with open_editor(tmp_path, variables(tmp_path, server.base_url)) as other:
            with pytest.raises(RequestError, match=r"in use|open") as busy:
                await other.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
            assert (busy.value.code, busy.value.data["reason"]) == (-32600, "busy")


async def test_sessions_are_listed_by_folder_and_resumed(tmp_path: Path) -> None:
    async with editing(tmp_path, ["One.", "Two."]) as (editor, _):
        session = await editor.open()
        await editor.say(session, "the first question")
        await editor.open()  # nothing was said in it
        await editor.agent.close_session(session_id=session)
        here = await editor.agent.list_sessions(cwd=str(editor.workspace))
        (tmp_path / "elsewhere").mkdir()
        there = await editor.agent.list_sessions(cwd=str(tmp_path / "elsewhere"))
        before = len(editor.client.updates)
        await editor.agent.resume_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
        replayed = [update for update in editor.client.updates[before:] if "message" in update["sessionUpdate"]]
        await editor.say(session, "and?")

    assert [(one.session_id, one.title, one.cwd) for one in here.sessions] == [
        (session, "the first question", str(editor.workspace))
    ]
    assert there.sessions == []
    assert replayed == []


@pytest.mark.parametrize("session", ["nothing", "../../etc/passwd", "00000000-0000-4000-8000-000000000000"])
async def test_a_session_that_is_not_there_is_said(tmp_path: Path, session: str) -> None:
    async with editing(tmp_path, []) as (editor, _):
        with pytest.raises(RequestError, match=r"[Nn]o session"):
            await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])


async def test_a_session_of_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with editing(tmp_path, ["Hello."]) as (editor, _):
        session = await editor.open()
        await editor.say(session, "hi")
        await editor.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="belongs to"):
            await editor.agent.load_session(cwd=str(tmp_path / "elsewhere"), session_id=session, mcp_servers=[])
        await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
        with pytest.raises(RequestError, match="belongs to") as wrong:  # also while it is open
            await editor.agent.load_session(cwd=str(tmp_path / "elsewhere"), session_id=session, mcp_servers=[])
        assert wrong.value.code == -32602


async def test_a_workspace_that_is_not_trusted_says_so_and_can_be_trusted(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Always answer in verse.")
    async with editing(tmp_path, ["Prose.", "Verse."]) as (editor, server):
        session = await editor.open()
        await editor.say(session, "hi")
        assert "this thread works without AGENTS.md" in editor.client.said("agent_thought_chunk")
        assert "verse" not in str(server.chats[0])
        await editor.say(session, "/trust yes")
        await editor.say(await editor.open(), "hi")

    assert "verse" in str(server.chats[1])


async def test_an_editor_and_a_terminal_work_in_one_folder(tmp_path: Path) -> None:
    """The terminal's lease of the workspace keeps no editor out, and the other way round."""
    async with editing(tmp_path, ["From the editor."]) as (editor, _):
        from ollm.app import ProcessScope, WorkspaceScope

        lease = WorkspaceScope(ProcessScope(workspace=editor.workspace), editor.workspace).create_lease()
        lease.acquire()
        try:
            ended = await editor.say(await editor.open(), "hi")
        finally:
            lease.release()

    assert ended.stop_reason == "end_turn"


async def test_more_sessions_than_a_page_holds_are_listed_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ollm.acp.sessions.PAGE_SESSIONS", 2)
    async with editing(tmp_path, ["Yes."] * 5) as (editor, _):
        made = []
        for number in range(5):
            made.append(await editor.open())
            await editor.say(made[-1], f"question {number}")
        pages = [await editor.agent.list_sessions(cwd=str(editor.workspace))]
        while pages[-1].next_cursor:
            pages.append(await editor.agent.list_sessions(cwd=str(editor.workspace), cursor=pages[-1].next_cursor))
        beyond = await editor.agent.list_sessions(cursor="1000")

    assert [len(page.sessions) for page in pages] == [2, 2, 1]
    assert [one.session_id for page in pages for one in page.sessions] == made[::-1]
    assert (beyond.sessions, beyond.next_cursor) == ([], None)
