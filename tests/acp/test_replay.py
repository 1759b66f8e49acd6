"""A session that is loaded again: every message and call, oldest first."""

from pathlib import Path

from tests.acp.editor import EDIT, editing
from tests.servers.answers import Answer


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
