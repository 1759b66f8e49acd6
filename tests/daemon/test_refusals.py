"""What the daemon refuses: strangers, web pages, wrong bodies and wrong paths, each with its own status."""

import json
import stat
from pathlib import Path

import pytest

from tests.covers import covers
from tests.daemon.running import Daemon, daemon
from tests.daemon.test_sessions import listing

NOBODY = "00000000-0000-4000-8000-000000000000"


async def test_each_mistake_has_its_status_and_a_problem_document(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"]) as found:
        here = {"workspacePath": str(found.workspace)}
        cases = [
            (400, ("POST", "/sessions", None), {"raw": b"{broken"}),
            (400, ("POST", "/sessions", None), {"raw": b"[" * 100_000}),
            (400, ("POST", "/init", None), {"raw": b'{"a":' * 100_000}),
            (400, ("POST", "/sessions", {"workspacePath": "relative"}), {}),
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
            (404, ("POST", "/snapshots/none/restore", None), {}),
            (413, ("POST", "/sessions", None), {"raw": b'{"workspacePath": "' + b"x" * 1_100_000 + b'"}'}),
            (415, ("POST", "/sessions", None), {"raw": b"a=1", "headers": {"content-type": "text/plain"}}),
            (422, ("POST", "/sessions", {**here, "sessionId": "not-a-uuid"}), {}),
            (422, ("POST", "/sessions", {"workspacePath": 7}), {}),
            (422, ("POST", "/sessions", {**here, "colour": "red"}), {}),
            (422, ("GET", "/sessions/../etc/passwd", None), {}),
            (422, ("GET", f"/sessions/{NOBODY}/history?limit=0", None), {}),
        ]  # fmt: skip
        for status, request, more in cases:
            reply = await found.ask(*request, **more)
            assert reply.status == status or (status == 422 and reply.status == 404 and ".." in request[1]), (
                request,
                reply.body,
            )
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


@covers("W170")
async def test_the_database_of_a_workspace_may_be_broken_locked_or_newer(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two"]) as found:
        session = await found.open()
        await found.say(session, "hi")
        await found.ask("DELETE", f"/sessions/{session}")
        database = found.workspace / ".ollm" / "memory.db"
        database.write_bytes(database.read_bytes()[:3000])

        broken = await found.ask("GET", listing(found.workspace))

        assert broken.status == 500
        assert "memory.db" in broken.json["detail"]
        database.unlink()
        assert [line["sessionId"] for line in (await found.ask("GET", listing(found.workspace))).json] == [session]


async def test_a_session_of_another_workspace_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one"]) as found:
        session = await found.open()
        await found.say(session, "hi")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        await found.ask("DELETE", f"/sessions/{session}")

        reply = await found.ask("POST", "/sessions", {"workspacePath": str(elsewhere), "sessionId": session})

        assert reply.status == 422
        assert str(found.workspace) in reply.json["detail"]
