"""`ollm policy`: the rules and grants shown, checked, tried on recorded calls, and revoked."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.policy.samples import check, run
from tests.covers import covers
from tests.store.sessions.support import Home, call, said


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


def test_ollms_own_records_ask_also_in_a_session_that_runs_among_them(inside: Inside) -> None:
    records, places = ("run", "sessions", "cache/x", "logs"), ("extensions/mine", "skills/x", "commands", "project")
    for folder, decision in [*((name, "ask") for name in records), *((name, "allow") for name in places)]:
        (place := inside.home / folder).mkdir(parents=True)
        inside.patch.chdir(place)
        assert inside.read_json("policy", "check", "shell", "--param", "command=cat token")["decision"] == decision


@covers("T3.8")
def test_other_tools_are_checked_by_their_parameters(place: Path):
    inside = run(place, "policy", "check", "write_file", "--args", '{"path": "a.txt"}')
    outside = run(place, "policy", "check", "write_file", "--param", "path=/etc/passwd")
    protected = run(place, "policy", "check", "edit_file", "--param", "path=.git/config")

    assert inside.startswith("ask")
    assert outside.startswith("deny")
    assert "always asks about this" in protected


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [("read_many_files", "paths"), ("read_many_files", "files"), ("diagnostics", "path"), ("task", "files")],
)
def test_a_path_is_judged_as_in_a_run_whatever_its_parameter_is_called(inside: Inside, tool: str, parameter: str):
    outside = inside.read_json("policy", "check", tool, "--param", f"{parameter}=/etc/passwd")
    within = inside.read_json("policy", "check", tool, "--param", f"{parameter}=a.txt")

    assert (outside["decision"], outside["locked"], within["decision"]) == ("ask", True, "allow")


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
