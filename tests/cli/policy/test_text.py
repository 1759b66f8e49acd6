"""`ollm policy show` and `revoke`: the rules and grants as people read them."""

import json
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.policy.samples import RULES, run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


def test_grants_are_shown_with_numbers_and_taken_back(place: Path):
    (place / "home").mkdir()
    (place / "home/grants.yaml").write_text("grants: ['shell:make', 'write_file:src/**']\n")

    shown = json.loads(run(place, "policy", "show", "--json"))
    assert [(one["number"], one["grant"]) for one in shown["grants"]] == [(1, "shell:make"), (2, "write_file:src/**")]
    assert {one["workspace"] for one in shown["grants"]} == {None}
    assert "shell:make" in run(place, "policy", "show")
    assert "shell:make" in run(place, "policy", "revoke", "1")
    assert "Add --yes" in run(place, "policy", "revoke", "--all", code=2)
    assert json.loads(run(place, "policy", "revoke", "--all", "--yes", "--json")) == {"revoked": ["write_file:src/**"]}


def test_show_lists_configured_rules_with_their_lines_before_the_built_in_ones(place: Path):
    (place / "home").mkdir()
    (place / "home/config.yaml").write_text(RULES)

    rules = json.loads(run(place, "policy", "show", "--json"))["rules"]

    assert [(rule["layer"], rule["line"]) for rule in rules[:2]] == [("configured", 4), ("configured", 5)]
    assert {rule["layer"] for rule in rules[2:]} == {"built-in"}


def test_the_policy_is_one_document(inside: Inside) -> None:
    inside.configure(
        "policy: {approval: accept-edits, rules: [{tool: '*', action: ask}, {tool: ls, action: deny, message: no}]}\n"
    )
    (inside.home / "grants.yaml").write_text("grants: ['shell:make']\n")
    document = inside.read_json("policy", "show")

    assert (document["approval"], document["trusted"]) == ("accept-edits", False)
    first, second, *rest = document["rules"]
    assert (first["tool"], first["action"], first["message"], first["layer"], first["problem"]) == (
        *("ls", "deny", "no", "configured"),
        None,
    )
    assert first["file"].endswith("config.yaml")
    assert second["tool"] == "*"
    assert {rule["layer"] for rule in rest} == {"built-in"}
    assert document["grants"] == [{"number": 1, "grant": "shell:make", "workspace": None}]


def test_the_policy_for_people(inside: Inside) -> None:
    said = inside.read("policy", "show")
    assert said.startswith("Approval level: ask. This workspace is not trusted.\n")
    assert "everything else" in said
    assert said.endswith("\nNo permanent grants.\n")
    inside.home.mkdir(exist_ok=True)
    (inside.home / "grants.yaml").write_text("grants: ['shell:make']\n")
    inside.read("trust")
    said = inside.read("policy", "show")
    assert said.startswith("Approval level: ask. This workspace is trusted.\n")
    assert said.splitlines()[-1].split() == ["1", "shell:make", "everywhere"]
