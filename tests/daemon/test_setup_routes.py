"""Routes to what is set up."""

from pathlib import Path

from tests.daemon.running import daemon


async def test_each_route_is_described_and_refuses_what_it_does_not_take(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        described = (await found.ask("GET", "/schema/openapi.json")).json["paths"]
        for path, body in (
            ("/policy/check", {"tool": 7}),
            ("/policy/check", {"tool": "shell", "params": []}),
            ("/policy/check", {"tool": "shell", "params": {"command": 7}}),
            ("/policy/backtest", {"rules": ""}),
            ("/policy/backtest", {"rules": "x", "colour": "red"}),
        ):
            assert (await found.ask("POST", path, body)).status == 422, (path, body)

    assert {"/tools", "/policy", "/policy/check", "/policy/backtest", "/models", "/settings", "/events"} <= set(
        described
    )
    assert {"/sessions/{session_id}/context", "/sessions/{session_id}/transcript", "/web/login"} <= set(described)
