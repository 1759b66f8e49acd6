"""Sessions of an editor: introduced, opened, replayed, in trusted and unknown workspaces."""

import asyncio
import signal
from pathlib import Path

import msgspec
import pytest
from acp import RequestError

from ollm.acp.permissions import build_options, build_trust_question, read_answer
from ollm.acp.transport import build_introduction
from ollm.domain.tools import ConfirmationDetails, Risk
from ollm.policy.trust import TrustState
from tests.acp.editor import EDIT, RunningEditor, editing, open_editor, raw_agent, variables
from tests.cli.forked import finish
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer


async def test_a_session_is_deleted_for_good_open_or_not(tmp_path: Path) -> None:
    async with editing(tmp_path, ["Hello."]) as (editor, _):
        session = await editor.open()
        await editor.say(session, "hi")
        for _ in range(2):
            await editor.agent._conn.send_request("session/delete", {"sessionId": session})
        assert (await editor.agent.list_sessions()).sessions == []
    assert not [path for path in tmp_path.rglob(f"{session}*") if path.is_file()]


async def test_a_wrong_first_message_is_answered_and_the_next_is_right(tmp_path: Path) -> None:
    async with raw_agent(variables(tmp_path, "http://127.0.0.1:9")) as agent:
        agent.write(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
            {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 99}},
        )
        wrong, right = await agent.answer(1), await agent.answer(2)

    assert wrong["error"]["code"] == -32602
    assert right["result"] == build_introduction(99)


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


async def test_a_thread_without_a_message_keeps_its_id_in_the_next_agent(tmp_path: Path) -> None:
    async with ScriptedServer(["Hello.", "Terminal."]) as server:
        environment = variables(tmp_path, server.base_url)
        async with open_editor(tmp_path, environment) as editor:
            session = await editor.open()
        async with open_editor(tmp_path, environment) as editor:
            await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
            listed = await editor.agent.list_sessions(cwd=str(editor.workspace))
            asked = ("-p", "go on", "--continue"), editor.workspace, environment, None
            code, _, newest = await asyncio.to_thread(finish, *asked)
            await editor.say(session, "hi")

    assert listed.sessions == []
    assert (code, b"No session in this workspace yet" in newest) == (0, True)
    assert [chat["messages"][-1]["content"] for chat in server.chats] == ["go on", "hi"]


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
        from ollm.app.process import ProcessScope
        from ollm.app.workspace import WorkspaceScope

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


async def test_a_loaded_session_is_told_again_in_order(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one\ntwo\n")
    script = [EDIT, Answer(text="Done.", thinking="I think.")]
    async with editing(tmp_path, script, "once") as (editor, _):
        session = await editor.open()
        await editor.say(session, "change it")
    async with editing(tmp_path, ["More."]) as (editor, server):
        await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
        told = list(editor.client.updates)
        await editor.say(session, "and now?")

    kinds = [update["sessionUpdate"] for update in told]
    assert kinds[:4] == ["user_message_chunk", "tool_call", "agent_thought_chunk", "agent_message_chunk"]
    assert told[0]["content"]["text"] == "change it"
    call = told[1]
    assert (call["title"], call["kind"], call["status"]) == ("Edit a.txt (1 edit)", "edit", "completed")
    assert (call["content"][0]["oldText"], call["content"][0]["newText"]) == ("one\ntwo\n", "one\nthree\n")
    assert "change it" in str(server.chats[0])


def prepare(directory: Path) -> None:
    (directory / "project").mkdir()
    (directory / "project" / "AGENTS.md").write_text("Always answer in verse.")


async def talk(editor: RunningEditor, times: int = 1) -> None:
    session = await editor.open()
    for _ in range(times):
        await editor.say(session, "hi")


@pytest.mark.parametrize(("chosen", "asked", "verse"), [("trust", 1, True), ("later", 2, False), ("never", 1, False)])
async def test_the_first_message_asks_and_the_answer_counts_at_once(
    tmp_path: Path, chosen: str, asked: int, verse: bool
) -> None:
    prepare(tmp_path)
    async with editing(tmp_path, ["One.", "Two.", "Three."], chosen) as (editor, server):
        await talk(editor, 2)
        assert len(editor.client.asked) == 1
        await talk(editor)

    assert len(editor.client.asked) == asked
    call, options = editor.client.asked[0]
    assert call.title == f"Trust {editor.workspace}?"
    assert "AGENTS.md" in call.content[0].content.text
    assert [option.kind for option in options] == ["allow_always", "reject_once", "reject_always"]
    assert [("verse" in str(chat)) for chat in server.chats] == [verse] * 3
    assert "resumed" not in str(server.chats[0]["messages"])  # nothing was said before
    assert "Resumed" not in editor.client.said("agent_thought_chunk")


async def test_commands_and_an_own_workspace_ask_nothing(tmp_path: Path) -> None:
    async with editing(tmp_path, ["One."], "trust") as (editor, _):
        await talk(editor)
        (editor.workspace / "AGENTS.md").write_text("Verse.")
        await editor.say(await editor.open(), "/status")

    assert editor.client.asked == []


def test_a_change_is_named_and_many_files_are_counted() -> None:
    changed = TrustState(workspace="/w", trusted=False, known=True, changed=("AGENTS.md",), added=("a\x1b",))
    many = TrustState(workspace="/w", trusted=False, files=tuple(f"f{n}" for n in range(15)))

    assert "AGENTS.md (changed)" in str(build_trust_question(changed))
    assert "\x1b" not in build_trust_question(changed)["content"][0]["content"]["text"]
    assert "and 3 more" in str(build_trust_question(many))


DETAILS = ConfirmationDetails(
    call_id="c1",
    tool="shell",
    description="npm test",
    risk=Risk.HIGH,
    reason="may modify files",
    grant="shell:npm test",
    prefix="shell:npm",
)


def test_what_is_locked_can_only_be_allowed_once() -> None:
    locked = msgspec.structs.replace(DETAILS, locked=True)

    assert [option["optionId"] for option in build_options(locked)] == ["once", "reject"]
    assert not read_answer("always", locked).approved
