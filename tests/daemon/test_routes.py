"""The routes of the API."""

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import quote

import pytest

from ollm.domain.errors import BusyError, NotFoundError
from ollm.domain.events import AnyEvent, ConfirmationRequested, TurnFinished
from tests.daemon.inside import daemon_inside
from tests.daemon.running import daemon, listing
from tests.servers.answers import Answer


async def test_requests_that_make_no_sense_are_told_so(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        session = await found.open()
        reader, writer = await asyncio.open_unix_connection(str(found.socket))
        smuggled = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
        writer.write(
            b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled.encode()
        )
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1, "what follows is not answered"

        headers = {"last-event-id": "9" * 5000}
        with contextlib.suppress(asyncio.TimeoutError):
            reply = await asyncio.wait_for(found.ask("GET", f"/sessions/{session}/events", headers=headers), 0.5)
            assert reply.status == 200
        for path in ("/" + "a" * 300, "/" + "a/" * 3000 + "b", "/" + "ü" * 200):
            assert (await found.ask("POST", "/init", {"workspacePath": path})).status in (400, 422)
            reply = await found.ask("GET", f"/workspaces/{quote(path, safe='')}/sessions")
            assert reply.status == 400, reply.body
        for path in ("/sessions/" + "a" * 300, "/sessions/%00", "/snapshots/" + "b" * 5000 + "/restore"):
            assert (await found.ask("GET" if "snap" not in path else "POST", path)).status in (404, 422, 400)


async def test_all_sessions_are_listed_page_by_page_and_all_workspaces(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"] * 5) as found:
        made = []
        for number in range(5):
            place = tmp_path / f"project{number % 2}"
            place.mkdir(exist_ok=True)
            reply = await found.ask("POST", "/sessions", {"workspacePath": str(place)})
            made.append(reply.json["sessionId"])
            await found.say(made[-1], f"hello {number}")
        first = await found.ask("GET", "/sessions?limit=2")
        rest = await found.ask("GET", "/sessions?limit=10&offset=2")
        places = (await found.ask("GET", "/workspaces")).json
    assert first.headers["x-total-count"] == "5"
    assert "offset=2" in first.headers["link"]
    assert "link" not in rest.headers
    assert [line["sessionId"] for line in first.json + rest.json] == made[::-1]
    assert [(line["workspacePath"], line["sessions"]) for line in places] == [
        (str(tmp_path / "project0"), 3), (str(tmp_path / "project1"), 2),
    ]  # fmt: skip


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
        counts = [len((await found.ask("GET", f"/sessions?status={one}")).json) for one in ("archived", "unarchived")]
        assert counts == [1, 0]
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


async def test_events_come_after_the_number_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon_inside(tmp_path, monkeypatch, "One.", "Two.") as found:
        session = await found.open()
        first = await found.say(session, "hi")
        seen: list[AnyEvent] = []
        async with found.client.stream("GET", f"/sessions/{session}/events", last=first[2].seq) as events:
            async for event in events:
                seen.append(event)
                if isinstance(event, TurnFinished):
                    break
        assert seen == first[3:]


async def test_questions_are_answered_once_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Answer(calls=[("write_file", {"path": "new.txt", "content": "x"})])
    async with daemon_inside(tmp_path, monkeypatch, write, "Done.") as found:
        session = await found.open()
        async with found.client.stream("POST", f"/sessions/{session}/messages", {"text": "write"}) as events:
            async for event in events:
                if isinstance(event, ConfirmationRequested):
                    path = f"/sessions/{session}/confirmations/{event.correlation_id}"
                    with pytest.raises(NotFoundError, match="No question nobody in this session"):
                        await found.post(f"/sessions/{session}/confirmations/nobody", approved=True)
                    assert await found.post(path, approved=True) == {"accepted": True}
                    with pytest.raises(BusyError, match="already answered or withdrawn"):
                        await found.post(path, approved=False)
        assert (found.workspace / "new.txt").exists()
