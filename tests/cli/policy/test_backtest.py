"""`ollm policy backtest`: recorded calls under other rules."""

import json
from pathlib import Path

import pytest

from tests.cli.policy.samples import RULES, run


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
