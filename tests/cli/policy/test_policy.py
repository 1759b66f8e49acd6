"""`ollm policy` and `ollm trust`, run as a person runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ollm
from tests.covers import covers

RULES = """\
policy:
  defaultAction: ask
  rules:
    - {tool: shell, action: allow, conditions: [{param: command, operator: program, value: [ls, cat]}]}
    - tool: shell
      action: deny
      message: nothing is wiped here
      conditions: [{param: command, operator: program, value: rm, flags: [recursive, force]}]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/rules.yaml").write_text(RULES, encoding="utf-8")
    return tmp_path


def run(place: Path, *arguments: str, stdin: str = "", code: int = 0) -> str:
    done = ollm(*arguments, home=place / "home", cwd=place / "work", stdin=stdin, HOME=str(place))
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def check(place: Path, command: str, *more: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        run(place, "policy", "check", "shell", "--param", f"command={command}", "--json", *more)
    )
    return document


@covers("T7.2", "T7.4")
def test_check_tells_the_decision_the_rule_with_its_place_and_every_part(place: Path):
    document = check(place, "ls -la && sudo rm -fr x", "--rules", "rules.yaml")

    assert (document["decision"], document["reason"]) == ("deny", "nothing is wiped here")
    assert document["rule"]["layer"] == "configured"
    assert document["rule"]["file"].endswith("rules.yaml")
    assert document["rule"]["line"] == 5
    assert [part["decision"] for part in document["parts"]] == ["allow", "ask", "deny"]
    assert set(document["parts"][0]) == {"command", "decision", "reason"}


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


def test_hundreds_of_lines_take_seconds(place: Path):
    import time

    lines = [json.dumps({"id": n, "params": {"command": f"cat src/{n}.py | grep x > out{n}"}}) for n in range(300)]
    begin = time.perf_counter()
    out = run(place, "policy", "check", "shell", "--rules", "rules.yaml", "--batch", stdin="\n".join(lines))

    assert len(out.splitlines()) == 300
    assert time.perf_counter() - begin < 20


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


def test_a_rule_that_cannot_be_read_is_told_and_asks(place: Path):
    (place / "work/rules.yaml").write_text("rules:\n  - {tool: shell, action: alow}\n")
    done = ollm(
        "policy", "check", "shell", "--rules", "rules.yaml", "--param", "command=ls", "--json", cwd=place / "work"
    )

    assert json.loads(done.stdout)["decision"] == "ask"
    assert "is invalid" in done.stderr


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
