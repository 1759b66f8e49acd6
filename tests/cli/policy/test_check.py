"""`ollm policy check`: one verdict, or one a line."""

import json
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.policy.samples import RULES, check, run
from tests.covers import covers


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


@covers("T7.2", "T7.4")
def test_check_tells_the_decision_the_rule_with_its_place_and_every_part(place: Path):
    document = check(place, "ls -la && sudo rm -fr x", "--rules", "rules.yaml")

    assert (document["decision"], document["reason"]) == ("deny", "nothing is wiped here")
    assert document["rule"]["layer"] == "configured"
    assert document["rule"]["file"].endswith("rules.yaml")
    assert document["rule"]["line"] == 5
    assert [part["decision"] for part in document["parts"]] == ["allow", "ask", "deny"]
    assert set(document["parts"][0]) == {"command", "decision", "reason"}


def test_a_batch_answers_line_by_line_and_a_bad_line_stops_nothing(place: Path):
    asked = [
        {"id": 1, "params": {"command": "ls"}},
        {"id": "two", "params": {"command": "rm -rf /"}},
        {"id": 3},
        {"id": 4, "params": {"command": 7}},
    ]
    lines = [*map(json.dumps, asked), "not json", "[]", "", json.dumps({"id": 5, "params": {"command": "make"}})]

    out = run(
        place, "policy", "check", "shell", "--rules", "rules.yaml", "--batch", "--json", stdin="\n".join(lines) + "\n"
    )

    answers = [json.loads(line) for line in out.splitlines()]
    assert [(answer["id"], answer.get("decision", "error")) for answer in answers] == [
        (1, "allow"),
        ("two", "deny"),
        (3, "error"),
        (4, "error"),
        (None, "error"),
        (None, "error"),
        (5, "ask"),
    ]
    assert all("error" in answer or {"decision", "reason", "parts"} <= set(answer) for answer in answers)


def test_check_explains_itself_to_people(place: Path):
    out = run(place, "policy", "check", "shell", "--rules", "rules.yaml", "--param", "command=rm -r -f x")

    assert out.startswith("deny  shell: nothing is wiped here\n")
    assert "rules.yaml:5" in out


@covers("T3.8")
def test_other_tools_are_checked_by_their_parameters(place: Path):
    inside = run(place, "policy", "check", "write_file", "--args", '{"path": "a.txt"}')
    outside = run(place, "policy", "check", "write_file", "--param", "path=/etc/passwd")
    protected = run(place, "policy", "check", "edit_file", "--param", "path=.git/config")

    assert inside.startswith("ask")
    assert outside.startswith("deny")
    assert "always asks about this" in protected


@covers("S10.6")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "shell"], "shell needs a command"),
        (["check", "shell", "--param", "command"], "is not NAME=VALUE"),
        (["check", "shell", "--args", "{"], "--args is not JSON"),
        (["check", "shell", "--args", "[]"], "must be a JSON object"),
        (["check", "shell", "--param", "command=ls", "--rules", "missing.yaml"], "missing.yaml"),
        (["revoke"], "grant number, or --all"),
        (["revoke", "1"], "No grant 1"),
    ],
)
def test_mistakes_end_with_exit_2_and_one_clear_line(place: Path, arguments: list[str], said: str):
    assert said in run(place, "policy", *arguments, code=2)


def test_a_verdict_is_one_document(inside: Inside) -> None:
    allowed = inside.read_json("policy", "check", "shell", "--param", "command=ls")
    assert allowed["decision"] == "allow"
    assert set(allowed) == {"decision", "reason", "rule", "parts", "risk", "locked", "grant"}
    asked = inside.read_json("policy", "check", "shell", "--param", "command=npm run test")
    assert (asked["decision"], asked["locked"]) == ("ask", False)
    assert asked["grant"]


def test_a_verdict_for_people_says_how_to_allow_it(inside: Inside) -> None:
    said = inside.read("policy", "check", "shell", "--param", "command=npm run test")
    assert said.startswith("ask  shell: ")
    assert "\n  ask  npm run test  (" in said
    assert 'To allow it: ollm … --allow "shell:' in said
    locked = inside.read("policy", "check", "write_file", "--args", '{"path": ".git/config", "content": "x"}')
    assert "ollm always asks about this; grants, approval levels and --yes do not apply.\n" in locked
    assert "To allow it" not in locked
    assert "To allow it" not in inside.read("policy", "check", "shell", "--param", "command=ls")


def test_a_mistyped_tool_is_judged_and_the_likely_one_is_named(inside: Inside) -> None:
    slip = inside.run("policy", "check", "raed_file")

    assert (slip.code, slip.out.startswith("ask  raed_file")) == (0, True)
    assert slip.err == "ollm: there is no tool raed_file here; did you mean read_file?\n"
    assert inside.run("policy", "check", "read_file").err == ""
    assert inside.run("policy", "check", "tracker__close_issue").err == "", "an MCP server may have it"
