"""Looking after a command that was allowed to start is not asked about again."""

from pathlib import Path

import pytest

from ollm.domain.tools import PolicyRequest, Risk
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet, RuleSource, read_rules
from ollm.system.paths import Boundary


@pytest.mark.parametrize("action", ["read", "wait", "stop"])
def test_reading_waiting_and_stopping_run_unasked(tmp_path: Path, action: str) -> None:
    engine = PolicyEngine(RuleSet(), Boundary.around(tmp_path))

    verdict = engine.evaluate(PolicyRequest(tool="shell", params={"id": "job-1", "action": action}, risk=Risk.HIGH))

    assert verdict.decision == "allow"


def test_a_configured_rule_still_decides(tmp_path: Path) -> None:
    rules = read_rules([{"tool": "shell", "action": "deny"}], RuleSource(file="config.yaml", lines=(1,)))
    engine = PolicyEngine(RuleSet(rules=tuple(rules)), Boundary.around(tmp_path))

    assert engine.evaluate(PolicyRequest(tool="shell", params={"id": "job-1"})).decision == "deny"


def test_a_command_beside_an_id_is_judged_as_a_command(tmp_path: Path) -> None:
    engine = PolicyEngine(RuleSet(), Boundary.around(tmp_path))

    assert engine.evaluate(PolicyRequest(tool="shell", params={"id": "x", "command": "rm -r a"})).decision == "ask"
