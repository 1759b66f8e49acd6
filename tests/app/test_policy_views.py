"""The policy as documents."""

from pathlib import Path

import pytest

from ollm.app import ProcessScope, WorkspaceScope
from ollm.app.policy_views import check_call, serialize_policy
from ollm.domain.errors import UsageError


def test_rules_and_verdicts_are_plain_documents(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "OLLM_HOME": str(tmp_path / ".ollm")}
    engine = WorkspaceScope(ProcessScope(environment, workspace=tmp_path), tmp_path).create_policy()

    document = serialize_policy(engine)
    verdict = check_call(engine, "shell", {"command": "ls && rm x"})

    assert document["grants"] == []
    assert {rule["layer"] for rule in document["rules"]} == {"built-in"}
    assert verdict["decision"] == "ask"
    assert [part["command"] for part in verdict["parts"]] == ["ls", "rm x"]
    with pytest.raises(UsageError, match="shell needs a command"):
        check_call(engine, "shell", {})
