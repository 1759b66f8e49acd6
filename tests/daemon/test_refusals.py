"""What the daemon refuses: strangers, web pages, wrong bodies and wrong paths, each with its own status."""

import json
import stat
from pathlib import Path

import pytest

from ollm.store.session_files import SessionFiles, SessionPlaces
from tests.daemon.running import Daemon, daemon
from tests.daemon.test_sessions import WRITE, listing

NOBODY = "00000000-0000-4000-8000-000000000000"


async def test_each_mistake_has_its_status_and_a_problem_document(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"]) as found:
        here = {"workspacePath": str(found.workspace)}
        cases = [
            (400, ("POST", "/sessions", None), {"raw": b"{broken"}),
            (400, ("POST", "/sessions", None), {"raw": b"[" * 100_000}),
            (400, ("POST", "/init", None), {"raw": b'{"a":' * 100_000}),
            (400, ("POST", "/init", None), {}),
            (400, ("POST", "/sessions", {"workspacePath": "relative"}), {}),
            (400, ("POST", "/sessions", {"workspacePath": f"/{found.workspace}"}), {}),
            (400, ("POST", "/sessions", {"workspacePath": f"{found.workspace}/../project"}), {}),
            (400, ("POST", "/sessions", {"workspacePath": "/nowhere/at/all"}), {}),
            (400, ("POST", "/init", {"workspacePath": "a\0b"}), {}),
            (400, ("GET", "/workspaces/%00/sessions", None), {}),
            (400, ("GET", "/workspaces/project/sessions", None), {}),
            (400, ("GET", "/workspaces/%252Ftmp/sessions", None), {}),
            (400, ("GET", "/workspaces/%2Ftmp%2F..%2Ftmp/sessions", None), {}),
            (403, ("GET", "/health", None), {"headers": {"origin": "http://example.org"}}),
            (403, ("GET", "/health", None), {"headers": {"sec-fetch-site": "cross-site"}}),
            (404, ("GET", "/", None), {}),
            (404, ("GET", f"/sessions/{NOBODY}", None), {}),
            (404, ("POST", "/sessions", {**here, "sessionId": NOBODY}), {}),
            (404, ("DELETE", f"/sessions/{NOBODY}", None), {}),
            (404, ("GET", f"/sessions/{NOBODY}/snapshots", None), {}),
            (404, ("POST", f"/sessions/{NOBODY}/snapshots", None), {}),
            (404, ("POST", "/snapshots/none/restore", None), {}),
            (405, ("PUT", "/health", None), {}),
            (413, ("POST", "/sessions", None), {"raw": b'{"workspacePath": "' + b"x" * 1_100_000 + b'"}'}),
            (415, ("POST", "/sessions", None), {"raw": b"a=1", "headers": {"content-type": "text/plain"}}),
            (422, ("POST", "/sessions", {**here, "sessionId": "not-a-uuid"}), {}),
            (422, ("POST", "/sessions", {"workspacePath": 7}), {}),
            (422, ("POST", "/sessions", {**here, "colour": "red"}), {}),
            (404, ("GET", "/sessions/../etc/passwd", None), {}),
            (422, ("GET", "/sessions/..%2F..%2fetc%2Fpasswd", None), {}),
            (422, ("GET", f"/sessions/{NOBODY}/history?limit=0", None), {}),
        ]  # fmt: skip
        for status, request, more in cases:
            reply = await found.ask(*request, **more)
            assert reply.status == status, (request, reply.body)
            assert reply.headers["content-type"].startswith("application/problem+json")
            assert reply.json["status"] == reply.status
            assert reply.json["detail"]
            assert "access-control-allow-origin" not in reply.headers


async def test_over_tcp_every_route_wants_the_token_and_our_own_host(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"], "--tcp") as found:
        running = json.loads((found.home / "run" / "daemon.pid").read_text())
        token = (found.home / "run" / "token").read_text()
        url = f"http://127.0.0.1:{running['port']}"
        good = {"authorization": f"Bearer {token}"}

        assert len(token) >= 43
        assert (await found.ask("GET", "/health", url=url, headers=good)).status == 200
        for path in ("/health", "/schema/openapi.json", "/search?q=x", listing(found.workspace), "/nothing"):
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": token}):
                assert (await found.ask("GET", path, url=url, headers=headers)).status == 401
        assert (
            await found.ask("GET", "/health", url=f"http://localhost:{running['port']}", headers=good)
        ).status == 200
        rebound = await found.ask("GET", "/health", url=url, headers={**good, "host": "evil.example"})
        assert rebound.status == 403
        crossing = await found.ask("GET", "/health", url=url, headers={**good, "origin": url})
        assert crossing.status == 403
    assert not (found.home / "run" / "token").exists()


async def test_its_files_are_for_the_user_alone_and_a_second_daemon_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        run = found.home / "run"
        assert stat.S_IMODE(run.stat().st_mode) == 0o700
        assert stat.S_IMODE((run / "daemon.sock").stat().st_mode) == 0o600
        assert not (run / "token").exists()
        other = Daemon(tmp_path, found.server)
        other.socket = tmp_path / "never.sock"
        with pytest.raises(AssertionError, match="ended with 1"):
            await other.start()
        assert (await found.ask("GET", "/health")).status == 200


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


async def test_while_a_turn_runs_what_would_disturb_it_is_a_conflict(tmp_path: Path) -> None:
    async with daemon(tmp_path, [WRITE, "done"]) as found:
        session = await found.open()
        at = f"/sessions/{session}"
        async with found.stream("POST", f"{at}/messages", {"text": "write"}) as events:
            asked = await anext(event async for event in events if event["type"] == "confirmation-requested")
            for request in (
                ("POST", f"{at}/messages", {"text": "more"}),
                ("POST", f"{at}/commands", {"name": "model", "arguments": "other"}),
                ("POST", f"{at}/snapshots"),
                ("PATCH", at, {"status": "archived"}),
            ):
                assert (await found.ask(*request)).status == 409, request
            assert (await found.ask("PATCH", at, {"title": "Renamed"})).json["metadata"]["title"] == "Renamed"
            question = f"{at}/confirmations/{asked['correlationId']}"
            assert (await found.ask("POST", f"{at}/confirmations/{NOBODY}", {"approved": True})).status == 404
            assert (await found.ask("POST", question, {"approved": True, "scope": "once"})).json == {"accepted": True}
            assert (await found.ask("POST", question, {"approved": False})).status == 409
            assert [event["type"] async for event in events][-1] == "turn-finished"
        listed = (await found.ask("GET", listing(found.workspace))).json
        assert [(line["title"], line["status"]) for line in listed] == [("Renamed", "active")]
        assert (await found.ask("PATCH", at, {"status": "archived"})).status == 200
        assert [line["status"] for line in (await found.ask("GET", listing(found.workspace))).json] == ["archived"]
        assert (await found.ask("POST", f"{at}/messages", {"text": "more"})).status == 404


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


async def test_snapshots_of_a_closed_session_are_taken_and_restored_from_the_archive(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session = await found.open()
        await found.say(session, "first")
        await found.ask("DELETE", f"/sessions/{session}")
        taken = (await found.ask("POST", f"/sessions/{session}/snapshots")).json["id"]
        await found.open(sessionId=session)
        await found.say(session, "second")
        await found.ask("DELETE", f"/sessions/{session}")

        assert (await found.ask("POST", f"/snapshots/{taken}/restore")).status == 200
        await found.open(sessionId=session)
        await found.say(session, "third")

    sent = [message["content"] for message in found.server.chats[2]["messages"]]
    assert "first" in sent[1]
    assert not any(text.startswith("second") for text in sent)
