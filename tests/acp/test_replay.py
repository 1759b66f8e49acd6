"""A session that is loaded again: every message and call, oldest first."""

from pathlib import Path
from typing import Any

from ollm.acp import replay
from ollm.acp.replay import load_messages
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


async def test_a_very_long_session_is_told_from_where_it_can_be_shown(monkeypatch: Any) -> None:
    monkeypatch.setattr(replay, "PAGE_MESSAGES", 3)
    monkeypatch.setattr(replay, "MAX_REPLAYED_MESSAGES", 7)
    archive = [{"id": number} for number in range(1, 21)]

    async def load(before: int | None, limit: int) -> list[dict[str, Any]]:
        older = [one for one in archive if before is None or one["id"] < before]
        return older[-limit:]

    found, more = await load_messages(load)
    assert [one["id"] for one in found] == list(range(12, 21))
    assert more
    archive = archive[:5]
    assert ([one["id"] for one in (await load_messages(load))[0]], (await load_messages(load))[1]) == (
        [1, 2, 3, 4, 5],
        False,
    )
