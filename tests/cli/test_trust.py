"""`ollm trust`, and what a trusted workspace may do."""

import json
from pathlib import Path

import pytest

from tests.cli.policy.samples import RULES, check, run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


def test_trust_is_given_listed_and_taken_back(place: Path):
    (place / "work/AGENTS.md").write_text("x")
    assert check(place, "git status")["decision"] == "ask"

    assert "AGENTS.md" in run(place, "trust")
    assert check(place, "git status")["decision"] == "allow"
    assert "is already trusted" in run(place, "trust")
    assert json.loads(run(place, "trust", "--list", "--json"))[0]["trusted"] is True

    (place / "work/AGENTS.md").write_text("y")
    assert check(place, "git status")["decision"] == "ask"
    assert "changed since" in run(place, "trust", "--list")
    assert "AGENTS.md (changed)" in run(place, "trust")
    assert "no longer trusted" in run(place, "trust", "--revoke")
    assert check(place, "git status")["decision"] == "ask"


def test_a_trusted_workspace_may_forbid_but_never_allow(place: Path):
    (place / "work/.ollm").mkdir()
    (place / "work/.ollm/config.yaml").write_text(
        "policy:\n  rules:\n    - {tool: shell, action: allow}\n    - {tool: glob, action: deny}\n"
    )
    run(place, "trust")

    assert check(place, "make")["decision"] == "ask"
    assert run(place, "policy", "check", "glob", "--param", "pattern=*").startswith("deny")
