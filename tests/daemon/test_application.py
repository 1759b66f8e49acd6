"""Every error of the API is a problem document."""

from pathlib import Path

from tests.daemon.running import daemon

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
            (404, ("GET", "/nothing", None), {}),
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
