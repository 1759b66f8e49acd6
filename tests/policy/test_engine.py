"""Rules, groups, grants, approval levels and protections for calls of every tool (T7)."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.lazy import Lazy
from ollm.domain.tools import ConfirmationDetails, Location, PolicyRequest, Risk, Verdict
from ollm.policy.engine import PolicyEngine
from ollm.policy.grants import GrantBook
from ollm.policy.rules import RuleSet, RuleSource, read_rules
from ollm.system.sandbox.box import Level
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.shell import Shell
from tests.covers import covers
from tests.policy.conftest import Place, rule, shell


def call(engine: PolicyEngine, tool: str, **params: Any) -> Verdict:
    return engine.evaluate(PolicyRequest(tool=tool, params=params))


def on(tool: str, action: str, *conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool": tool, "action": action, "conditions": list(conditions), **more}


def when(param: str, operator: str, value: Any) -> dict[str, Any]:
    return {"param": param, "operator": operator, "value": value}


@covers("T7.1", "T7.2", "T7.3")
@pytest.mark.parametrize("action", ["allow", "ask", "deny"])
def test_the_action_of_the_rule_is_the_verdict(place: Place, action: str):
    assert call(place.engine([on("write_file", action)]), "write_file", path="a.txt").decision == action


@covers("T7.4")
@pytest.mark.parametrize(("named", "general"), [("allow", "deny"), ("deny", "allow"), ("ask", "allow")])
def test_rules_that_name_the_tool_come_before_rules_for_all(place: Place, named: str, general: str):
    engine = place.engine([on("*", general), on("write_file", named)])

    assert call(engine, "write_file", path="a.txt").decision == named
    assert call(engine, "edit_file", path="a.txt").decision == general


@covers("T7.5")
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_default_action_speaks_where_no_rule_does(place: Place, default: str):
    verdict = call(place.engine([on("other", "deny")], default), "some_tool", x=1)

    assert verdict.decision == default
    assert verdict.rule is not None
    assert verdict.rule.layer == "default"


@covers("T7.4")
def test_inside_a_group_deny_beats_ask_beats_allow_whatever_the_order(place: Place):
    rules = [on("t", "allow"), on("t", "deny", when("x", "equals", 1)), on("t", "ask", when("x", "equals", [1, 2]))]
    for order in (rules, rules[::-1]):
        engine = place.engine(order)
        assert [call(engine, "t", x=x).decision for x in (1, 2, 3)] == ["deny", "ask", "allow"]


@covers("T7.6")
@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        (when("x", "equals", "a"), "a", "ab"),
        (when("x", "equals", 5), 5, 6),
        (when("x", "equals", True), True, False),
        (when("x", "equals", "true"), True, False),
        (when("x", "equals", ["a", "b"]), "b", "c"),
        (when("x", "contains", "b"), "abc", "ac"),
        (when("x", "startsWith", "ab"), "abc", "cab"),
        (when("x", "matches", "^a+$"), "aaa", "aab"),
        (when("x", "matches", "b"), "abc", "ac"),
        (when("path", "under", "src"), "src/a.py", "srcx/a.py"),
        (when("path", "under", "src"), "./src/../src/a.py", "src/../a"),
        (when("path", "startsWith", "src/"), "./src/a.py", "lib/src/a"),
        (when("path", "equals", "src/a.py"), "src/./a.py", "src/b.py"),
    ],
)
@pytest.mark.parametrize("action", ["allow", "deny"])
def test_conditions_are_held_against_the_parameters(
    place: Place, condition: dict[str, Any], yes: Any, no: Any, action: str
):
    other = "deny" if action == "allow" else "allow"
    engine = place.engine([on("t", action, condition)], other)
    name = condition["param"]

    assert call(engine, "t", **{name: yes}).decision == action
    assert call(engine, "t", **{name: no}).decision == other


@covers("T7.6")
def test_all_conditions_must_hold_and_a_missing_parameter_holds_none(place: Place):
    engine = place.engine([on("t", "deny", when("x", "equals", 1), when("y", "equals", 2))], "allow")

    assert call(engine, "t", x=1, y=2).decision == "deny"
    assert call(engine, "t", x=1, y=3).decision == "allow"
    assert call(engine, "t", x=1).decision == "allow"


def test_a_list_is_allowed_when_every_item_is_and_denied_when_one_is(place: Place):
    paths = {"paths": ["src/a.py", "secrets/b"]}
    allowing = place.engine([on("read_many_files", "allow", when("paths", "under", "src"))])
    denying = place.engine([on("read_many_files", "deny", when("paths", "under", "secrets"))], "allow")

    assert call(allowing, "read_many_files", **paths).decision == "ask"
    assert call(denying, "read_many_files", **paths).decision == "deny"


@covers("T7.7")
def test_risk_is_said_per_tool_and_per_call(place: Place):
    engine = place.engine()

    assert call(engine, "read_file", path="a").risk == Risk.LOW
    assert call(engine, "write_file", path="a").risk == Risk.MEDIUM
    assert shell(engine, "ls").risk == Risk.LOW
    assert shell(engine, "rm -rf x").risk == Risk.HIGH
    assert call(place.engine([on("t", "ask", risk="high")]), "t").risk == Risk.HIGH


@covers("T7.8")
def test_a_confirmation_names_tool_description_risk_locations_and_the_command(place: Place):
    call = Shell(command="make\u202e test", cwd="src")
    params = {"command": call.command, "cwd": call.cwd}
    details = call.confirmation(place.engine().evaluate(PolicyRequest(tool="shell", params=params)))

    assert isinstance(details, ConfirmationDetails)
    assert (details.tool, details.description, details.risk) == ("shell", call.summary(), Risk.HIGH)
    assert details.locations == ("src",)
    assert details.command == "make⟨U+202E⟩ test"
    assert details.parts[0].command.startswith("make")


def test_a_workspace_file_may_add_deny_and_ask_but_never_allow(place: Place):
    entries = [on("a", "allow"), on("b", "ask"), on("c", "deny")]
    rules = read_rules(entries, RuleSource(file="config.yaml", lines=(1, 2, 3), workspace=True))

    assert [rule.tool for rule in rules] == ["b", "c"]
    assert (rules[1].reference.file, rules[1].reference.line) == ("config.yaml", 3)


def test_configured_rules_come_before_built_in_ones(place: Place):
    engine = PolicyEngine(
        RuleSet(rules=read_rules([on("read_file", "deny"), rule("ask", "program", "ls")])), place.boundary
    )

    assert call(engine, "read_file", path="a").decision == "deny"
    assert call(engine, "grep", pattern="a").decision == "allow"
    assert shell(engine, "ls").decision == "ask"
    assert shell(engine, "pwd").decision == "allow"


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "shell", "web_fetch", "web_search", "unknown_tool"])
def test_everything_else_asks(place: Place, tool: str):
    assert call(place.engine(), tool, path="src/a.py", command="make", url="https://x.org", query="x").decision == "ask"


@pytest.mark.parametrize(
    ("grant", "tool", "params", "decision"),
    [
        ("write_file", "write_file", {"path": "a.txt"}, "allow"),
        ("write_file", "edit_file", {"path": "a.txt"}, "ask"),
        ("write_file:src/**", "write_file", {"path": "src/deep/a.py"}, "allow"),
        ("write_file:src/**", "write_file", {"path": "src/../a.py"}, "ask"),
        ("write_file:src/**", "write_file", {"path": "srcx/a.py"}, "ask"),
        ("write_file:src/*.py", "write_file", {"path": "src/a.py"}, "allow"),
        ("write_file:src/*.py", "write_file", {"path": "src/deep/a.py"}, "ask"),
        ("write_file:**", "write_file", {"path": ".git/config"}, "ask"),
        ("web_fetch:docs.python.org", "web_fetch", {"url": "https://docs.python.org/3/"}, "allow"),
        ("web_fetch:docs.python.org", "web_fetch", {"url": "https://DOCS.python.org:443/3/"}, "allow"),
        ("web_fetch:docs.python.org", "web_fetch", {"url": "https://docs.python.org.evil.com/"}, "ask"),
        ("web_fetch:docs.python.org", "web_fetch", {"url": "https://evil.com/docs.python.org"}, "ask"),
        ("web_fetch:docs.python.org", "web_fetch", {"url": "https://docs.python.org@evil.com/"}, "ask"),
        ("web_fetch:*.python.org", "web_fetch", {"url": "https://docs.python.org/"}, "allow"),
        ("web_fetch:*.python.org", "web_fetch", {"url": "https://evilpython.org/"}, "ask"),
        ("web_fetch:X.ORG:8080", "web_fetch", {"url": "https://x.org:8080/a"}, "allow"),
        ("web_fetch:x.org:8080", "web_fetch", {"url": "https://x.org/a"}, "ask"),
        ("web_search:words", "web_search", {"query": "words"}, "allow"),
        ("read_many_files:**", "read_many_files", {"paths": ["a", "../out"]}, "ask"),
        ("shell", "shell", {"command": "make > log"}, "allow"),
        ("shell", "shell", {"command": "echo x > .git/config"}, "ask"),
    ],
)
def test_a_grant_answers_exactly_what_it_names(
    place: Place, grant: str, tool: str, params: dict[str, Any], decision: str
):
    engine = place.engine(grants=GrantBook(granted=[grant]))

    assert call(engine, tool, **params).decision == decision


def test_no_grant_and_no_approval_level_answers_a_deny(place: Place):
    rules = [on("write_file", "deny"), rule("deny", "program", "rm")]
    for settings in ({"grants": GrantBook(granted=["write_file", "shell"])}, {"approval": "yolo"}):
        engine = place.engine(rules, **settings)
        assert call(engine, "write_file", path="a").decision == "deny"
        assert shell(engine, "rm x").decision == "deny"


@pytest.mark.parametrize(
    ("approval", "tool", "params", "decision"),
    [
        ("ask", "write_file", {"path": "a"}, "ask"),
        ("accept-edits", "write_file", {"path": "a"}, "allow"),
        ("accept-edits", "edit_file", {"path": "src/a.py"}, "allow"),
        ("accept-edits", "edit_file", {"path": ".env"}, "ask"),
        ("accept-edits", "write_file", {"path": "/tmp/a"}, "deny"),
        ("accept-edits", "shell", {"command": "make"}, "ask"),
        ("yolo", "shell", {"command": "make && rm -rf build"}, "allow"),
        ("yolo", "shell", {"command": "echo $(unknown) > log"}, "allow"),
        ("yolo", "shell", {"command": "cat /etc/passwd"}, "ask"),
        ("yolo", "shell", {"command": "echo x > .git/hooks/pre-commit"}, "ask"),
        ("yolo", "write_file", {"path": ".ollm/config.yaml"}, "ask"),
        ("yolo", "read_file", {"path": "/etc/passwd"}, "ask"),
        ("yolo", "web_fetch", {"url": "https://x.org"}, "allow"),
        ("read-only", "read_file", {"path": "a"}, "allow"),
        ("read-only", "write_file", {"path": "a"}, "deny"),
        ("read-only", "shell", {"command": "ls | wc -l"}, "allow"),
        ("read-only", "shell", {"command": "make"}, "deny"),
        ("read-only", "shell", {"command": "ls > x"}, "deny"),
        ("read-only", "some_tool", {}, "deny"),
        ("read-only", "web_fetch", {"url": "https://x.org"}, "ask"),
    ],
)
def test_approval_levels(place: Place, approval: Any, tool: str, params: dict[str, Any], decision: str):
    assert call(place.engine(approval=approval), tool, **params).decision == decision


@pytest.mark.parametrize(
    ("tool", "params", "grant"),
    [
        ("shell", {"command": "cargo test --all && ls"}, "shell:cargo test"),
        ("shell", {"command": "timeout 5 ./run.sh"}, "shell:=./run.sh"),
        ("edit_file", {"path": "src/a.py"}, "edit_file:src/a.py"),
        ("web_fetch", {"url": "https://Docs.python.org/3/"}, "web_fetch:docs.python.org"),
        ("web_search", {"query": "x"}, "web_search"),
        ("edit_file", {"path": "./src/../a.py"}, "edit_file:a.py"),
    ],
)
def test_the_grant_on_offer_is_the_narrowest_that_makes_sense_and_it_answers(
    place: Place, tool: str, params: dict[str, Any], grant: str
):
    verdict = call(place.engine(), tool, **params)
    assert verdict.grant == grant

    again = call(place.engine(grants=GrantBook(granted=[grant])), tool, **params)
    assert again.decision == "allow"


def test_a_locked_question_offers_no_grant(place: Place):
    for verdict in (call(place.engine(), "write_file", path=".env"), shell(place.engine(), "cat .env")):
        assert (verdict.decision, verdict.locked, verdict.grant) == ("ask", True, None)


@covers("T3.8")
def test_writing_outside_is_refused_by_its_own_name(place: Place):
    verdict = call(place.engine(approval="yolo"), "write_file", path="../x")

    assert (verdict.decision, verdict.error_type) == ("deny", "OutsideWorkspace")


def test_a_command_is_not_run_outside_the_workspace(place: Place):
    verdict = shell(place.engine(), "ls", cwd="..")

    assert (verdict.decision, verdict.error_type) == ("deny", "OutsideWorkspace")
    assert shell(place.engine(), "cat a.py", cwd="src").decision == "allow"
    assert shell(place.engine(), "cat ../../secret", cwd="src").decision == "ask"


def test_what_a_yes_opens_is_named(place: Place):
    verdict = call(place.engine(), "read_file", path="../secret")

    assert verdict.approve == (str(place.workspace.parent / "secret"),)


def test_locations_said_by_the_tool_count(place: Place):
    request = PolicyRequest(tool="mcp_read", params={"uri": "x"}, locations=(Location(target="../x"),))

    assert place.engine([on("mcp_*", "allow")]).evaluate(request).locked


@pytest.mark.parametrize("approval", ["ask", "read-only"])
@pytest.mark.parametrize("action", ["read", "wait", "stop"])
def test_looking_after_a_background_command_asks_nothing(place: Place, approval: Any, action: str):
    assert call(place.engine(approval=approval), "shell", id="1", action=action).decision == "allow"
    assert call(place.engine(approval=approval), "shell", id="1", action=action, command="evil").decision != "allow"


@pytest.mark.parametrize("tool", ["shell", "write_file", "read_file"])
@pytest.mark.parametrize("theirs", ["shell", "write_file", "read_file", "*", "*_file"])
def test_a_workspace_only_tightens_what_the_users_rules_decide(place: Place, tool: str, theirs: str):
    params = {"command": "ls"} if tool == "shell" else {"path": "a.txt"}
    added = read_rules([on(theirs, "ask")], RuleSource(workspace=True))
    broken = read_rules([{"tool": theirs, "action": "perhaps"}], RuleSource(workspace=True))
    for more in (added, broken):
        denied = RuleSet(rules=(*read_rules([on("*", "deny")]), *more), builtin=False)
        silent = RuleSet(rules=more, default_action="deny", builtin=False)
        for rules in (denied, silent):
            assert call(PolicyEngine(rules, place.boundary), tool, **params).decision == "deny"


def test_a_workspaces_rule_is_stricter_than_any_group_of_the_users(place: Place):
    own = read_rules([on("shell", "allow"), on("write_file", "allow"), on("*", "deny")])
    theirs = read_rules([on("*", "ask"), rule("deny", "program", "make")], RuleSource(workspace=True))
    engine = PolicyEngine(RuleSet(rules=(*own, *theirs)), place.boundary)

    assert call(engine, "write_file", path="a.txt").decision == "ask"
    assert shell(engine, "ls").decision == "ask"
    assert shell(engine, "make").decision == "deny"
    assert call(engine, "edit_file", path="a.txt").decision == "deny"


@pytest.mark.parametrize(
    ("line", "level", "approves", "decision", "layer"),
    [
        ("cat a", "none", False, "allow", "built-in"),
        ("grep x src/a.py", "none", False, "ask", "sandbox"),
        ("grep x src/a.py", "none", True, "ask", "sandbox"),
        ("grep x src/a.py", "full", False, "allow", "built-in"),
        ("touch a", "full", False, "ask", "built-in"),
        ("touch a", "full", True, "allow", "sandbox"),
        ("touch a", "none", True, "ask", "built-in"),
        ("cat .env", "full", True, "ask", "protection"),
        ("grep -r x .", "full", False, "allow", "built-in"),
        ("grep -r x .", "landlock", False, "ask", "built-in"),
        ("sort --zap a", "landlock", False, "allow", "built-in"),
        ("sort --zap a", "none", False, "ask", "sandbox"),
        ("git log --frob", "none", False, "ask", "sandbox"),
        ("find . -frob", "none", False, "ask", "sandbox"),
    ],
)
def test_what_the_box_holds_decides_what_runs_unasked(
    place: Place, line: str, level: Level, approves: bool, decision: str, layer: str
) -> None:
    verdict = shell(place.engine(sandbox=Lazy(lambda: make_box(place, level, approves=approves))), line)

    assert verdict.rule is not None
    assert (verdict.decision, verdict.rule.layer) == (decision, layer)


@pytest.mark.parametrize(
    ("action", "line", "level"), [("ask", "touch a", "full"), ("allow", "grep x src/a.py", "none")]
)
def test_the_box_takes_no_question_from_the_user_s_own_rule_and_adds_none(
    place: Place, action: str, line: str, level: Level
) -> None:
    own = [rule(action, "contains", line)]
    verdict = shell(place.engine(own, sandbox=Lazy(lambda: make_box(place, level, approves=True))), line)

    assert verdict.rule is not None
    assert (verdict.decision, verdict.rule.layer) == (action, "configured")


def make_box(place: Place, level: Level, *, approves: bool) -> Sandbox:
    """Of the given level, whatever the machine of the tests can hold."""
    sandbox = Sandbox(place.workspace, place.home, cache=place.home, auto_approve=approves)
    sandbox.level = level
    return sandbox


@pytest.mark.parametrize(("directory", "decision"), [("src", "allow"), ("inner", "ask"), ("inner/deep", "ask")])
def test_git_in_a_repository_inside_the_workspace_is_asked_about(tmp_path: Path, directory: str, decision: str) -> None:
    place = Place(tmp_path)
    (place.workspace / "inner/deep").mkdir(parents=True)
    for name in ("objects", "refs"):
        (place.workspace / "inner/.git" / name).mkdir(parents=True)
    (place.workspace / "inner/.git/HEAD").write_text("ref: refs/heads/main\n")

    assert shell(place.engine(), f"cd {directory} && git log").decision == decision


@pytest.mark.parametrize("word", [".git/config", '".git/config"', "'.git/hooks/post-commit'", "--into=.git/config"])
def test_a_protected_file_named_to_an_unknown_program_is_protected_in_quotes_too(place: Place, word: str) -> None:
    verdict = shell(place.engine(), f"mytool {word}")

    assert (verdict.decision, verdict.locked) == ("ask", True)
    assert not shell(place.engine(), 'mytool -m "see .git/config"').locked


def test_a_command_in_a_sum_is_judged_as_any_other(place: Place) -> None:
    engine = place.engine([rule("deny", "startsWith", "touch")], "allow")

    assert shell(engine, "let x=$(touch a)").decision == "deny"
    assert shell(engine, "let x=1").decision == "ask"


@pytest.mark.parametrize("line", ["cat @x", "sort @x", "test a = /etc/passwd", "[ x = /etc/passwd ]"])
def test_a_word_that_only_looks_like_a_file_is_no_reason_to_ask(place: Place, line: str) -> None:
    assert shell(place.engine(), line).decision == "allow"


def test_what_env_sets_is_said_and_what_it_starts_is_judged(place: Place) -> None:
    verdict = shell(place.engine(), "env A=1 rm a")

    assert (verdict.decision, verdict.reason) == ("ask", "it sets A")
