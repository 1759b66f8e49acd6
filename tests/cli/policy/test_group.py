"""`ollm policy`: files of rules, and rules that cannot be read."""

import json
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.inside import Inside
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


def test_grants_are_revoked_by_number_or_all(inside: Inside) -> None:
    said = inside.fail("policy", "revoke", code=2)
    assert "Give a grant number, or --all." in said
    assert "Give a grant number" in inside.fail("policy", "revoke", "1", "--all", code=2)
    inside.home.mkdir()
    (inside.home / "grants.yaml").write_text("grants: ['shell:make', 'shell:npm test', 'edit_file']\n")
    assert inside.read("policy", "revoke", "2") == "Revoked: shell:npm test\n"
    assert inside.read_json("policy", "revoke", "1") == {"revoked": ["shell:make"]}
    assert "Revoke the grant?" in inside.fail("policy", "revoke", "--all", code=2)
    assert inside.read("policy", "revoke", "--all", "--yes") == "Revoked: edit_file\n"
    assert inside.read("policy", "revoke", "--all", "--yes") == "Nothing to revoke.\n"


def test_a_rule_that_cannot_be_used_is_told(inside: Inside) -> None:
    inside.configure("policy: {rules: [{tool: shell, action: sometimes}]}\n")
    done = inside.run("policy", "show")

    assert done.code == 0
    place = f"{inside.home / 'config.yaml'}:1"
    assert done.err == (
        f"ollm: The rule at {place} is invalid (action must be one of allow, ask, deny), so shell asks.\n"
    )
