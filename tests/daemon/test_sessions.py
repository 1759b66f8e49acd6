"""Sessions in the daemon: made, resumed, listed after a restart, shared by clients, one active at a time."""

import asyncio
import json
import signal
import sqlite3
from pathlib import Path
from urllib.parse import quote

from tests.covers import covers
from tests.daemon.running import daemon
from tests.servers.answers import Answer

WRITE = Answer(calls=[("write_file", {"path": "new.txt", "content": "x"})])


def listing(workspace: Path) -> str:
    return f"/workspaces/{quote(str(workspace), safe='')}/sessions"


def texts(events: list[dict[str, object]]) -> str:
    return "".join(str(event["text"]) for event in events if event["type"] == "text-delta")


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


@covers("W107", "W159")
async def test_opening_another_session_closes_the_first_one(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two"]) as found:
        first = await found.open()
        await found.say(first, "hi")
        second = await found.open()

        assert (await found.ask("POST", f"/sessions/{first}/cancel")).status == 404
        states = {line["sessionId"]: line["status"] for line in (await found.ask("GET", listing(found.workspace))).json}
        assert states[first] == "closed"
        assert second != first


async def test_two_clients_see_the_same_events_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with daemon(tmp_path, [WRITE, "Written."]) as found:
        session = await found.open()

        async def watch() -> list[dict[str, object]]:
            seen: list[dict[str, object]] = []
            async with found.stream("GET", f"/sessions/{session}/events", last=0) as events:
                async for event in events:
                    seen.append(event)
                    if event["type"] == "turn-finished":
                        break
            return seen

        watching = asyncio.create_task(watch())
        answers: list[int] = []
        seen: list[dict[str, object]] = []
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "write"}) as events:
            async for event in events:
                seen.append(event)
                if event["type"] == "confirmation-requested":
                    busy = await found.ask("POST", f"/sessions/{session}/messages", {"text": "me too"})
                    assert busy.status == 409
                    place = f"/sessions/{session}/confirmations/{event['correlationId']}"
                    replies = [await found.ask("POST", place, {"approved": True}) for _ in range(2)]
                    answers = [reply.status for reply in replies]
        other = await asyncio.wait_for(watching, 30)

    assert answers == [200, 409]
    assert [event["seq"] for event in seen] == list(range(int(str(seen[0]["seq"])), int(str(seen[-1]["seq"])) + 1))
    assert other[-len(seen) :] == seen
    assert (found.workspace / "new.txt").read_text() == "x"


async def test_a_client_that_goes_away_stops_nothing_and_comes_back_to_the_rest(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text=" ".join(str(n) for n in range(40)), pace=0.02)]) as found:
        session = await found.open()
        last = 0
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "count"}) as events:
            async for event in events:
                last = event["seq"]
                if event["type"] == "text-delta":
                    break
        seen = []
        async with found.stream("GET", f"/sessions/{session}/events", last=last) as events:
            async for event in events:
                seen.append(event)
                if event["type"] == "turn-finished":
                    break

    assert [event["seq"] for event in seen] == list(range(last + 1, last + 1 + len(seen)))
    assert seen[-1]["reason"] == "answered"
    assert len(found.server.chats) == 1


async def test_running_turns_may_end_when_the_daemon_is_stopped(tmp_path: Path) -> None:
    async with daemon(tmp_path, [Answer(text="a slow but whole answer", pace=0.1)]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "slowly"}) as events:
            async for event in events:
                if event["type"] == "text-delta":
                    break
            assert await found.end(signal.SIGTERM) == 0

        document = json.loads((found.home / "sessions" / f"{session}.json").read_text())

    assert document["messages"][-1]["parts"][0]["text"] == "a slow but whole answer"
    assert not (found.home / "run" / "daemon.sock").exists()


async def test_the_rest_of_the_api_answers(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["The **door** is blue."]) as found:
        session = await found.open()
        await found.say(session, "What colour?")
        at = f"/sessions/{session}"

        assert (await found.ask("GET", "/health")).json["sessions"] == 1
        assert (await found.ask("GET", at)).json["sessionId"] == session
        assert (await found.ask("GET", f"{at}/status")).json["model"] == "scripted"
        assert [m["id"] for m in (await found.ask("GET", f"{at}/history?limit=1")).json] == [2]
        assert [m["id"] for m in (await found.ask("GET", f"{at}/history?before=2")).json] == [1]
        assert b"The **door** is blue." in (await found.ask("GET", f"{at}/export?format=markdown")).body
        assert (await found.ask("GET", f"{at}/export")).json["sessionId"] == session
        assert (await found.ask("GET", "/search?q=door")).json[0]["sessionId"] == session
        shown = await found.ask("POST", f"{at}/commands", {"name": "context"})
        assert "tokens used" in shown.json["text"]
        taken = await found.ask("POST", f"{at}/snapshots")
        assert [s["id"] for s in (await found.ask("GET", f"{at}/snapshots")).json] == [taken.json["id"]]
        assert (await found.ask("POST", f"/snapshots/{taken.json['id']}/restore")).status == 200
        assert (await found.ask("DELETE", f"/snapshots/{taken.json['id']}")).status == 204
        assert (await found.ask("POST", f"{at}/cancel")).json == {"accepted": False}
        await found.ask("DELETE", at)
        renamed = await found.ask("PATCH", at, {"title": "Doors", "status": "archived"})
        assert renamed.json["metadata"]["title"] == "Doors"
        assert [line["status"] for line in (await found.ask("GET", listing(found.workspace))).json] == ["archived"]
        assert (await found.ask("DELETE", f"{at}?erase=true")).status == 204
        assert (await found.ask("GET", at)).status == 404

    left = [path for path in found.home.rglob("*") if path.is_file() and session.encode() in path.read_bytes()]
    assert left == []


async def test_a_message_is_text_and_commands_have_a_route_of_their_own(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["What do you mean?"]) as found:
        session = await found.open()
        async with found.stream("POST", f"/sessions/{session}/messages", {"text": "/approval yolo"}) as events:
            seen = [event async for event in events]
        after = (await found.ask("POST", f"/sessions/{session}/commands", {"name": "approval"})).json
        changed = await found.ask("POST", f"/sessions/{session}/commands", {"name": "mode", "arguments": "plan"})

    assert seen[-1]["reason"] == "answered"
    assert found.server.chats[0]["messages"][-1]["content"] == "/approval yolo"
    assert "yolo" not in after["text"].partition(".")[0]
    assert changed.status == 200
