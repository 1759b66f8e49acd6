"""The verdict on a line: the strictest part counts, and it says what was thought of each."""

import pytest

from ollm.domain.tools import Risk
from ollm.policy.grants import Grant
from ollm.policy.rules import RuleSet, read_rules
from ollm.policy.shell.verdict import JudgedLine, ShellJudge
from tests.policy.conftest import Place, rule


def judge(place: Place, line: str, *rules: dict[str, object], approval: str = "ask", **more: object) -> JudgedLine:
    chosen = RuleSet(rules=read_rules(rules), builtin=bool(more.pop("builtin", True)))
    shell = ShellJudge(chosen, place.boundary, trusted=bool(more.pop("trusted", True)))
    grants = [Grant(tool="shell", text=str(text)) for text in (more.pop("grants", ()) or ())]  # type: ignore[attr-defined]
    return shell.judge({"command": line, **more}, grants, approval)  # type: ignore[arg-type]


def test_the_strictest_part_counts(place: Place) -> None:
    deny = rule("deny", "program", "rm")
    assert judge(place, "ls").verdict.decision == "allow"
    assert judge(place, "ls; frob").verdict.decision == "ask"
    assert judge(place, "frob; rm x; ls", deny).verdict.decision == "deny"
    assert judge(place, "frob | cat .env").verdict.locked
    assert not judge(place, "rm x; cat .env", deny).verdict.locked


def test_a_line_that_only_reads_says_so(place: Place) -> None:
    read = judge(place, "ls | cat")
    assert (read.reads, read.exact, read.verdict.reads, read.verdict.risk) == (True, True, True, Risk.LOW)
    assert (judge(place, "grep x a").reads, judge(place, "grep x a").exact) == (True, False)
    assert judge(place, "frob").reads is False
    assert judge(place, "ls; frob").reads is False
    assert judge(place, "ls (").reads is False
    assert judge(place, "cat $x").exact is False
    assert judge(place, "echo $x").exact is False
    assert judge(place, "ls > x").reads is False
    assert judge(place, "git log").reads is True
    assert judge(place, "git log", trusted=False).reads is False
    assert judge(place, "").reads is False


def test_approval_and_grants_answer_what_is_not_locked(place: Place) -> None:
    assert judge(place, "frob", approval="yolo").verdict.decision == "allow"
    assert judge(place, "cat .env", approval="yolo").verdict.decision == "ask"
    assert judge(place, "rm x", rule("deny", "program", "rm"), approval="yolo").verdict.decision == "deny"
    assert judge(place, "frob a", grants=["frob"]).verdict.rule.layer == "grant"  # type: ignore[union-attr]
    assert "does not cover" in judge(place, "frob /etc/x", grants=["frob"]).verdict.reason


def test_each_part_is_told_with_its_reason(place: Place) -> None:
    verdict = judge(place, "timeout 5 ls && frob > x").verdict
    assert [(part.command, part.decision) for part in verdict.parts] == [
        ("ls", "allow"),
        ("> x", "ask"),
        ("frob", "ask"),
    ]
    assert judge(place, "cat .env").verdict.approve == (str(place.workspace / ".env"),)
    assert judge(place, "frob").verdict.risk == Risk.HIGH


def test_rules_that_name_shell_come_before_rules_for_all(place: Place) -> None:
    everything = {"tool": "*", "action": "deny"}
    assert judge(place, "ls", everything).verdict.decision == "deny"
    assert judge(place, "ls", everything, rule("allow", "program", "ls")).verdict.decision == "allow"
    assert judge(place, "ls", {"tool": "sh*", "action": "deny"}).verdict.decision == "deny"
    assert judge(place, "ls", {"tool": "read*", "action": "deny"}).verdict.decision == "allow"


def test_a_rule_that_may_hold_asks(place: Place) -> None:
    verdict = judge(place, "frob $x", rule("deny", "startsWith", "frob -f"), rule("allow", "program", "frob")).verdict
    assert (verdict.decision, "may apply at run time" in verdict.reason) == ("ask", True)


def test_an_allowed_program_is_not_allowed_what_it_can_be_made_to_do(place: Place) -> None:
    allow = rule("allow", "program", ["sort", "tar"])
    assert judge(place, "sort a", allow).verdict.decision == "allow"
    assert judge(place, "sort -o x a", allow).verdict.decision == "ask"
    assert judge(place, "sort -o x a", rule("allow", "startsWith", "sort -o")).verdict.decision == "allow"
    assert judge(place, "tar -xf a", allow).verdict.decision == "allow"
    assert judge(place, "ls > x", rule("allow", "program", "ls")).verdict.decision == "ask"


def test_a_harmless_wrapper_can_be_forbidden_by_name(place: Place) -> None:
    assert judge(place, "timeout 5 ls", rule("deny", "program", "timeout")).verdict.decision == "deny"
    assert judge(place, "timeout 5 ls", rule("ask", "program", "timeout")).verdict.decision == "ask"


def test_without_the_built_in_rules_the_default_decides(place: Place) -> None:
    assert judge(place, "ls", builtin=False).verdict.decision == "ask"
    assert judge(place, "", builtin=False).verdict.decision == "ask"


def test_a_write_rule_holds_for_redirections_and_a_cwd_counts(place: Place) -> None:
    deny = {
        "tool": "write_file", "action": "deny",
        "conditions": [{"param": "path", "operator": "under", "value": "src"}],
    }  # fmt: skip
    assert judge(place, "ls > src/x", deny).verdict.decision == "deny"
    assert judge(place, "ls > x", deny).verdict.decision == "ask"
    assert judge(place, "cat ../a", cwd="src").verdict.decision == "allow"
    assert judge(place, "cat ../a").verdict.locked
    assert judge(place, "cat a", cwd=5).verdict.decision == "allow"
    assert judge(place, "cat a", cwd="").verdict.decision == "allow"


def test_a_workspace_rule_only_tightens(place: Place) -> None:
    from ollm.policy.rules import RuleSource

    theirs = read_rules([rule("deny", "program", "ls"), rule("ask", "program", "rm")], RuleSource(workspace=True))
    own = read_rules([rule("deny", "program", "rm")])
    shell = ShellJudge(RuleSet(rules=(*theirs, *own)), place.boundary, trusted=True)

    decisions = {line: shell.judge({"command": line}, (), "ask").verdict.decision for line in ("ls", "rm x", "cat a")}
    assert decisions == {"ls": "deny", "rm x": "deny", "cat a": "allow"}


@pytest.mark.parametrize("line", ["echo 'a", "cat <<E\nx", "ls\u200b", "ls " + "a" * 10_001])
def test_what_is_not_understood_asks(place: Place, line: str) -> None:
    assert judge(place, line).verdict.decision == "ask"
    assert judge(place, line, rule("allow", "program", ["ls", "echo", "cat"])).verdict.decision == "ask"
