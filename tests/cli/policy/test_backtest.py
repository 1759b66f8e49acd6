"""`ollm policy backtest`: recorded calls under other rules."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.policy.samples import RULES, run
from tests.store.sessions.support import Home, call, said


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


def test_a_backtest_counts_recorded_calls_under_other_rules(place: Path):
    session = {
        "sessionId": "11111111-1111-4111-8111-111111111111",
        "startTime": "2025-01-01T00:00:00.000Z",
        "lastActivity": "2025-01-01T00:00:00.000Z",
        "model": "m",
        "provider": "p",
        "messages": [],
        "toolCalls": [
            {
                "id": str(n),
                "name": "shell",
                "args": {"command": command},
                "timestamp": "2025-01-01T00:00:00.000Z",
                "result": None,
            }
            for n, command in enumerate(["ls", "make", "rm -rf x"])
        ],
        "metadata": {},
    }
    (place / "home/sessions").mkdir(parents=True)
    (place / "home/sessions/11111111-1111-4111-8111-111111111111.json").write_text(json.dumps(session))

    document = json.loads(run(place, "policy", "backtest", "rules.yaml", "--json"))

    assert {name: document[name] for name in ("calls", "allow", "ask", "deny")} == {
        "calls": 3,
        "allow": 1,
        "ask": 1,
        "deny": 1,
    }
    assert [(one["what"], one["now"], one["then"]) for one in document["changes"]] == [("rm -rf x", "ask", "deny")]
    assert "3 recorded calls." in run(place, "policy", "backtest", "rules.yaml")


async def record_calls(home: Home, *commands: str) -> str:
    service = home.service()
    session = await service.create_session("m", "ollama")
    await service.record_message(session, said("hi"))
    for number, command in enumerate(commands):
        await service.record_tool_call(
            session, call(f"c{number}", result="x", name="shell", args={"command": command}, message_id=1)
        )
    await service.close_session(session)
    return session


def test_recorded_calls_are_counted_under_both_rules(inside: Inside) -> None:
    session = asyncio.run(record_calls(Home(inside.home), "ls", "npm test", "npm test", "make x\x1b"))
    condition = "{param: command, operator: program, value: npm}"
    (inside.workspace / "r.yaml").write_text(
        f"policy:\n  rules:\n    - {{tool: shell, action: deny, conditions: [{condition}]}}\n"
    )
    result = inside.read_json("policy", "backtest", "r.yaml")

    assert {key: result[key] for key in ("calls", "allow", "ask", "deny")} == {
        "calls": 4,
        "allow": 1,
        "ask": 1,
        "deny": 2,
    }
    assert result["today"] == {"allow": 1, "ask": 3, "deny": 0}
    (change,) = result["changes"]
    assert change == {
        "sessionId": session,
        "callId": "c1",
        "tool": "shell",
        "what": "npm test",
        "now": "ask",
        "then": "deny",
    }
    shown = inside.read("policy", "backtest", "r.yaml")
    assert shown.startswith("4 recorded calls.\n\n")
    assert [line.split() for line in shown.splitlines()[3:6]] == [
        ["allow", "1", "1"],
        ["ask", "3", "1"],
        ["deny", "0", "2"],
    ]
    assert "npm test" in shown
