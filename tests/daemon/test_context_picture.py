"""The window as the pages draw it."""

from pathlib import Path

from tests.daemon.running import daemon


async def test_parts_messages_and_speeds_of_an_open_session_and_of_a_closed_one(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["An answer in some words."] * 3) as found:
        session = await found.open()
        await found.say(session, "one")
        await found.say(session, "two")
        live = (await found.ask("GET", f"/sessions/{session}/context")).json
        await found.ask("DELETE", f"/sessions/{session}")
        closed = (await found.ask("GET", f"/sessions/{session}/context")).json
        missing = await found.ask("GET", "/sessions/00000000-0000-4000-8000-000000000000/context")

    assert live["live"] is True
    assert closed["live"] is False
    for picture in (live, closed):
        assert [one["numbers"] for one in picture["messages"]] == [[1], [2], [3], [4]]
        assert {part["name"] for part in picture["parts"]} >= {"instructions", "tool schemas", "user messages"}
        assert 0 < picture["used"] < picture["window"]
        assert picture["recallableCount"] == 0
    assert [turn["messageId"] for turn in live["turns"]] == [1, 3]
    assert live["reuse"][-1]["reusedShare"] == 1.0
    assert missing.status == 404
