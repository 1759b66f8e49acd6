"""Tools, policy, models and settings through the API."""

from pathlib import Path

import pytest

from tests.daemon.running import daemon
from tests.servers.answers import Answer

RULES = "policy:\n  rules:\n    - {tool: ls, action: deny}\n    - {tool: shell, action: perhaps}\n"
WRONG = "sessions:\n  maxSessions: 7\nprovider:\n  apiKey: sk-very-secret\ncolour: red\n"
LIST = Answer(calls=[("ls", {"path": "."})])


async def test_what_is_set_up_is_told_with_its_origin(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with daemon(tmp_path, [LIST, "ok"]) as found:
        found.home.mkdir(exist_ok=True)
        (found.home / "config.yaml").write_text(WRONG)
        session = await found.open()
        await found.say(session, "list it")
        here = {"workspacePath": str(found.workspace)}
        tools = (await found.ask("GET", "/tools")).json
        policy = (await found.ask("GET", f"/policy?workspace={found.workspace}")).json
        verdict = (
            await found.ask("POST", "/policy/check", {"tool": "shell", "params": {"command": "rm x"}, **here})
        ).json
        tested = (await found.ask("POST", "/policy/backtest", {"rules": RULES, **here})).json
        broken = await found.ask("POST", "/policy/backtest", {"rules": "policy: [", **here})
        models = (await found.ask("GET", "/models")).json
        settings = await found.ask("GET", "/settings")
        nowhere = await found.ask("GET", "/tools?workspace=/no/such/folder")

    assert {"shell", "read_file"} <= {tool["name"] for tool in tools}
    assert policy["defaultAction"] == "ask"
    assert (verdict["decision"], len(verdict["parts"])) == ("ask", 1)
    assert tested["calls"] == 1
    assert tested["deny"] == 1
    assert tested["changes"][0]["tool"] == "ls"
    assert [problem.partition(" (")[0] for problem in tested["problems"]] == ["The rule in line 4 is invalid"]
    assert broken.status == 422
    assert broken.json["detail"].startswith("These rules cannot be used: line 1, column 10 is not YAML: ")
    assert broken.json["detail"].endswith(".")
    assert [model["name"] for server in models["servers"] for model in server["models"]] == ["scripted"]
    assert models["facts"][0]["key"].endswith("|scripted")
    assert settings.json["settings"]["sessions"]["maxSessions"] == 7
    assert settings.json["sources"]["sessions.maxSessions"].endswith("config.yaml:2:3")
    assert b"sk-very-secret" not in settings.body
    assert nowhere.status == 400
    assert "colour: unknown key" in str(settings.json["problems"])
    assert capfd.readouterr().err.count("colour: unknown key") <= 2, (
        "by the service and the session, not by each request"
    )


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
