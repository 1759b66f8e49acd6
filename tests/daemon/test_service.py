"""Sessions opened, changed and ended through the API."""

import json
import signal
import sqlite3
from pathlib import Path

import pytest

from ollm.store.session_files import SessionFiles, SessionPlaces
from tests.covers import covers
from tests.daemon.running import WRITE, daemon, listing, texts

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize("closed", [True, False])
async def test_a_session_of_another_workspace_is_refused_and_nothing_is_closed_for_it(
    tmp_path: Path, closed: bool
) -> None:
    async with daemon(tmp_path, ["one"]) as found:
        session = await found.open()
        await found.say(session, "hi")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        other = await found.open(workspacePath=str(elsewhere))
        if closed:
            await found.ask("DELETE", f"/sessions/{session}")

        reply = await found.ask("POST", "/sessions", {"workspacePath": str(elsewhere), "sessionId": session})
        unknown = await found.ask("POST", "/sessions", {"workspacePath": str(elsewhere), "sessionId": NOBODY})

        assert reply.status == 422
        assert str(found.workspace) in reply.json["detail"]
        assert unknown.status == 404
        assert (await found.ask("GET", f"/sessions/{other}/status")).status == 200


async def test_a_session_that_another_process_has_open_is_not_ours_to_end(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", WRITE]) as found:
        session = await found.open()
        await found.say(session, "hi")
        await found.ask("DELETE", f"/sessions/{session}")
        writer, _ = SessionFiles(SessionPlaces(directory=found.home / "sessions")).open(session)
        try:
            for request in (("DELETE", f"/sessions/{session}"), ("DELETE", f"/sessions/{session}?erase=true")):
                reply = await found.ask(*request)
                assert reply.status == 409
                assert "another process" in reply.json["detail"]
            assert [line["status"] for line in (await found.ask("GET", listing(found.workspace))).json] == ["active"]
        finally:
            writer.close()
        assert (await found.ask("DELETE", f"/sessions/{session}?erase=true")).status == 204


@covers("W12", "W13", "W14", "W76", "W77", "W78", "W79", "W24", "W26", "W73", "W84", "W88", "W92", "W97", "W98", "W103", "W104", "W122", "W125", "W68", "W87", "W91", "W96", "W102", "W156", "W157", "W158", "W164")  # fmt: skip
async def test_a_session_survives_a_killed_daemon_and_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    script = ["The door is blue.", "Second.", "Blue, as I said."]
    async with daemon(tmp_path, script) as found:
        init = await found.ask("POST", "/init", {"workspacePath": str(found.workspace)})
        assert init.json == {"workspacePath": str(found.workspace), "trusted": False, "sessions": []}
        first = await found.open()
        events = await found.say(first, "What colour is the door?")
        assert texts(events) == "The door is blue."
        assert events[-1]["type"] == "turn-finished"
        second = await found.open()
        await found.say(second, "Something else")
        closed = await found.ask("DELETE", f"/sessions/{second}")
        assert closed.status == 204
        await found.end(signal.SIGKILL)

        await found.start()
        listed = (await found.ask("GET", listing(found.workspace))).json
        assert [set(line) for line in listed] == [{"sessionId", "title", "model", "status", "updatedAt"}] * 2
        assert {line["sessionId"]: (line["title"], line["model"], line["status"]) for line in listed} == {
            first: ("What colour is the door?", "scripted", "closed"),
            second: ("Something else", "scripted", "closed"),
        }
        again = await found.ask("POST", "/sessions", {"workspacePath": str(found.workspace), "sessionId": first})
        assert again.json == {"sessionId": first, "resumed": True}
        assert texts(await found.say(first, "And now?")) == "Blue, as I said."

    sent = found.server.chats[2]["messages"]
    assert [message["content"] for message in sent[1:3]] == ["What colour is the door?", "The door is blue."]
    assert sent[-1]["content"] == "And now?"
    document = json.loads((found.home / "sessions" / f"{first}.json").read_text())
    assert len(document["messages"]) == 4
    with sqlite3.connect(found.workspace / ".ollm" / "memory.db") as connection:
        states = dict(connection.execute("SELECT session_id, status FROM chat_sessions").fetchall())
    assert states == {first: "closed", second: "closed"}
