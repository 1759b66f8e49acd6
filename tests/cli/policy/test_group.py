"""`ollm policy`: files of rules, and rules that cannot be read."""

import json
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.policy.samples import RULES, check


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


def test_a_rules_file_stands_in_place_of_built_in_rules_and_grants_while_protections_stay(place: Path):
    (place / "home").mkdir()
    (place / "home/grants.yaml").write_text("grants: ['shell:make']\n")

    assert check(place, "make")["decision"] == "allow"
    assert check(place, "make", "--rules", "rules.yaml")["decision"] == "ask"
    assert check(place, "pwd")["decision"] == "allow"
    assert check(place, "pwd", "--rules", "rules.yaml")["decision"] == "ask"
    assert check(place, "cat .env", "--rules", "rules.yaml")["locked"]


def test_a_rules_file_may_hold_the_content_of_policy_alone(place: Path):
    (place / "work/bare.yaml").write_text("rules:\n  - {tool: shell, action: deny}\n")

    assert check(place, "ls", "--rules", "bare.yaml")["decision"] == "deny"


def test_a_rule_that_cannot_be_read_is_told_and_asks(place: Path):
    (place / "work/rules.yaml").write_text("rules:\n  - {tool: shell, action: alow}\n")
    done = ollm(
        "policy", "check", "shell", "--rules", "rules.yaml", "--param", "command=ls", "--json", cwd=place / "work"
    )

    assert json.loads(done.stdout)["decision"] == "ask"
    assert "is invalid" in done.stderr
