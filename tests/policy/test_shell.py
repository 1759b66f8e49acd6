"""The verdict on a shell line: its parts, reasons, paths, rules and grants."""

import os
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.tools import Risk
from ollm.policy.grants import Grant
from ollm.policy.rules import RuleSet, read_rules
from ollm.policy.shell.analysis import analyse_command
from ollm.policy.shell.verdict import JudgedLine, ShellJudge
from tests.policy.conftest import Place, judge, name_verdict, rule, shell


def judge_line(place: Place, line: str, *rules: dict[str, object], approval: str = "ask", **more: object) -> JudgedLine:
    chosen = RuleSet(rules=read_rules(rules), builtin=bool(more.pop("builtin", True)))
    shell = ShellJudge(chosen, place.boundary)
    grants = [Grant(tool="shell", text=str(text)) for text in (more.pop("grants", ()) or ())]  # type: ignore[attr-defined]
    return shell.judge({"command": line, **more}, grants, approval)  # type: ignore[arg-type]


def test_approval_and_grants_answer_what_is_not_locked(place: Place) -> None:
    assert judge_line(place, "frob", approval="yolo").verdict.decision == "allow"
    assert judge_line(place, "cat .env", approval="yolo").verdict.decision == "ask"
    assert judge_line(place, "rm x", rule("deny", "program", "rm"), approval="yolo").verdict.decision == "deny"
    assert judge_line(place, "frob a", grants=["frob"]).verdict.rule.layer == "grant"  # type: ignore[union-attr]
    assert "does not cover" in judge_line(place, "frob /etc/x", grants=["frob"]).verdict.reason


def test_each_part_is_told_with_its_reason(place: Place) -> None:
    verdict = judge_line(place, "timeout 5 ls && frob > x").verdict
    assert [(part.command, part.decision) for part in verdict.parts] == [
        ("ls", "allow"),
        ("> x", "ask"),
        ("frob", "ask"),
    ]
    assert judge_line(place, "cat .env").verdict.approve == (str(place.workspace / ".env"),)
    assert judge_line(place, "frob").verdict.risk == Risk.MEDIUM
    assert judge_line(place, "frob && rm -r build").verdict.risk == Risk.HIGH
    assert judge_line(place, "frob | sh").verdict.risk == Risk.HIGH


def test_a_harmless_wrapper_can_be_forbidden_by_name(place: Place) -> None:
    assert judge_line(place, "timeout 5 ls", rule("deny", "program", "timeout")).verdict.decision == "deny"
    assert judge_line(place, "timeout 5 ls", rule("ask", "program", "timeout")).verdict.decision == "ask"


def test_without_the_built_in_rules_the_default_decides(place: Place) -> None:
    assert judge_line(place, "ls", builtin=False).verdict.decision == "ask"
    assert judge_line(place, "", builtin=False).verdict.decision == "ask"


def test_a_write_rule_holds_for_redirections_and_a_cwd_counts(place: Place) -> None:
    deny = {
        "tool": "write_file", "action": "deny",
        "conditions": [{"param": "path", "operator": "under", "value": "src"}],
    }  # fmt: skip
    assert judge_line(place, "ls > src/x", deny).verdict.decision == "deny"
    assert judge_line(place, "ls > x", deny).verdict.decision == "ask"
    assert judge_line(place, "cat ../a", cwd="src").verdict.decision == "allow"
    assert judge_line(place, "cat ../a").verdict.locked
    assert judge_line(place, "cat a", cwd=5).verdict.decision == "allow"
    assert judge_line(place, "cat a", cwd="").verdict.decision == "allow"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ls\u200b", "invisible"), ("ls " + "a" * 10_000, "10,000"), ("ls (", "not a valid shell command"),
        ("$x", "the program is computed at run time"), ("l?", "computed at run time"), ("{ls,a}", "computed"),
        ("lſ", "looks like another name"), ("ls() { :; }; ls", "is defined by the line itself"), ("'' a", "without a name"),
        ("X=1 ls", "it sets X"), ("env X=1 ls", "it sets X"), ('sh -c "$x"', "a script in it is computed at run time"),
        ("echo x > AGENTS.md", "AGENTS.md steers"), ("cp a .vscode/x", ".vscode steers"),
        ("timeout $x ls", "what it runs is computed at run time"), ("ls > $x", "it writes a file computed at run time"),
        ("sh -c '" + "(" * 3000 + "'", "valid"), ("timeout() { :; }; timeout 5 ls", "is defined by the line itself"),
    ],
)  # fmt: skip
def test_the_reason_to_ask_is_said(place: Place, line: str, reason: str) -> None:
    verdict = judge(place, line)
    assert verdict.decision == "ask"
    assert reason in verdict.reason or any(reason in part.reason for part in verdict.parts)


@pytest.mark.parametrize(("levels", "deep"), [(19, False), (20, False), (21, True), (30, True)])
def test_nesting_ends_somewhere_and_asks(place: Place, levels: int, deep: bool) -> None:
    line = "eval " * levels + "rm x"
    verdict = judge(place, line)
    assert verdict.decision == "ask"
    told = [verdict.reason, *(part.reason for part in verdict.parts)]
    assert any("it is not a valid shell command (it is nested too deeply)" in reason for reason in told) is deep
    assert analyse_command(line, place.workspace, place.boundary).parts
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == "deny"


@pytest.mark.parametrize(("documents", "denied"), [(1, True), (19, True), (20, False)])
def test_here_documents_that_nobody_closed_are_closed_one_by_one(place: Place, documents: int, denied: bool) -> None:
    line = "; ".join(["sh <<E0", *(f"cat <<E{number}" for number in range(1, documents))]) + "\nr\\\nm x"
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == ("deny" if denied else "ask")


def test_the_version_of_a_program_that_a_home_brings_asks(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert name_verdict(judge(place, "curl --version")) == "allow"
    shim = tmp_path / "curl"
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert name_verdict(judge(place, "curl --version")) == "ask"
    assert name_verdict(judge(place, "curl -V")) == "ask"


OFFERED = [  # the line, the grant that is offered, the wider one
    ("npm run test", "shell:npm run test", "shell:npm run"), ("npm test", "shell:npm test", None),
    ("npm run", "shell:=npm run", "shell:npm run"), ("npm run --x", "shell:=npm run --x", "shell:npm run"),
    ("npm install x", "shell:=npm install x", "shell:npm install"), ("npm publish", "shell:=npm publish", None),
    ("git commit -m x", "shell:git commit", None), ("git push origin", "shell:=git push origin", None),
    ("git rebase x", "shell:=git rebase x", "shell:git rebase"), ("pytest -x", "shell:pytest", None),
    ("pytest", "shell:pytest", None), ("make test", "shell:make test", None), ("make", "shell:=make", None),
    ("rm a", "shell:=rm a", None), ("cp a b", "shell:=cp a b", "shell:cp"), ("curl x", "shell:=curl x", None),
    ("python3 -m pytest x", "shell:python3 -m pytest", None), ("python3 x.py", "shell:=python3 x.py", None),
    ("docker compose up", "shell:docker compose up", None), ("docker ps", "shell:=docker ps", None),
    ("uv run x", "shell:uv run x", None), ("gh pr list", "shell:gh pr list", "shell:gh pr"),
    ("pip install x", "shell:=pip install x", "shell:pip install"), ("frob y", "shell:=frob y", "shell:frob"),
    ("frob 'a b'", "shell:frob 'a b'", "shell:frob"), ("pytest 'a b'", "shell:pytest", None),
    ("cargo build", "shell:cargo build", None), ("cargo install x", "shell:=cargo install x", "shell:cargo install"),
    ("npm exec x", "shell:npm exec x", None), ("sudo ls", "shell:=sudo ls", None), ("bash x", "shell:=bash x", None),
    ("frob a && frob b", "shell:frob a && frob b", None), ("frob a; quux b", "shell:frob a; quux b", None),
    ("frob_x-y a", "shell:=frob_x-y a", "shell:frob_x-y"), ("./frob a", "shell:=./frob a", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "grant", "prefix"), OFFERED)
def test_the_grant_on_offer(place: Place, line: str, grant: str, prefix: str | None) -> None:
    verdict = judge(place, line)

    assert (verdict.decision, verdict.grant, verdict.prefix) == ("ask", grant, prefix)
    assert judge(place, line, "none", grant.removeprefix("shell:")).decision == "allow"


@pytest.mark.parametrize(
    ("grant", "line", "decision"),
    [
        ("frob a", "frob a b", "allow"), ("=frob a", "frob a b", "ask"), ("=frob a", "frob a", "allow"),
        ("frob a", "frob ab", "ask"), ("frob", "frob a > x", "ask"), ("frob", "X=1 frob a", "ask"),
        ("frob", "frob $(frob a)", "ask"), ("frob", "./frob a", "ask"), ("frob", "xargs frob", "ask"),
        ("frob a > x", "frob a > x", "allow"), ("frob", "frob a; quux", "ask"), ("frob", "frob a; frob b", "allow"),
        ("frob $x", "frob $x", "ask"), ("frob a > .git/x", "frob a > .git/x", "ask"), ("frob", "frob a .env", "ask"),
    ],
)  # fmt: skip
def test_what_a_grant_covers(place: Place, grant: str, line: str, decision: str) -> None:
    shell = ShellJudge(place.engine().rules, place.boundary)
    grants = [Grant(tool="read_file"), Grant(tool="shell", text=grant)]

    assert shell.judge({"command": line}, grants, "ask").verdict.decision == decision
    assert shell.judge({"command": line}, grants[:1], "ask").verdict.decision == "ask"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Repositories inside, links, names like options, and as many files as are looked at, and one more."""
    place = Place(tmp_path_factory.mktemp("large").resolve())
    work = place.workspace
    for name in (
        *("sub/.git", "sub/deep/er", "bare/objects", "bare/refs", "half/objects", "half/refs", "links", "options"),
        *("few", "many", "near/sub", "far/sub", "short/sub", "long/sub", "pack/node_modules", "kept/deep", ".git"),
    ):
        (work / name).mkdir(parents=True)
    (work / "bare/HEAD").write_text("x")
    (work / "links/in").symlink_to(work / "a")
    (work / "pack/node_modules/out").symlink_to("/etc")
    (work / "kept/deep/.env").write_text("x")
    (work / "options/-v").write_text("x")
    for name, count in (("few", 499), ("many", 500), ("near", 1498), ("far", 1499), ("short", 1499), ("long", 1500)):
        for number in range(count):
            (work / name / f"f{number}").touch()
    (work / "near/sub/.env").write_text("x")
    (work / "far/sub/.env").write_text("x")
    return place


LARGE = r"""
allow: cat few/*
ask: cat many/*
allow: cat options/*
ask: cd options && cat *
allow: git log
ask: cd sub && git log
ask: cd sub/deep/er && git log
ask: cd bare && git log
allow: cd half && git log
allow: cd src && git log
allow: grep -R x links
lock: grep -R x src
lock: grep -R x kept/..
allow: grep -R x pack
lock: rg -uuu x near
allow: rg -uuu x far
allow: grep -R x short
ask: grep -R x long
ask: grep -r x kept
ask: grep -r x kep*
ask: grep -r x k*/*
allow: grep -r x links
lock: rm -r kept/../..
"""


@pytest.mark.parametrize("row", LARGE.strip().splitlines())
def test_what_a_directory_holds_counts_as_far_as_it_is_looked_at(large: Place, row: str) -> None:
    wanted, _, line = row.partition(": ")
    assert name_verdict(judge(large, line)) == wanted


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        ([rule("allow", "startsWith", "git -C sub status")], "git -C sub status"),
        ([rule("allow", "equals", "sort -o out.txt in.txt")], "sort -o out.txt in.txt"),
        ([rule("allow", "startsWith", "find . -delete")], "find . -delete"),
    ],
)
def test_an_option_that_runs_or_writes_is_covered_where_the_rule_names_it(
    place: Place, rules: list[dict[str, Any]], command: str
):
    assert shell(place.engine(rules), command).decision == "allow"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("rm build/x", "allow"),
        ("rm -r build", "allow"),
        ("rm build/../src/a.py", "ask"),
        ("rm build/x src/a.py", "ask"),
        ("rm buildx", "ask"),
        ("rm $X", "ask"),
        ("cd src && rm build/x", "ask"),
    ],
)
def test_under_allows_only_when_every_path_is_inside(place: Place, command: str, decision: str):
    conditions = [
        {"param": "command", "operator": "program", "value": "rm"},
        {"param": "command", "operator": "under", "value": "build"},
    ]
    engine = place.engine(
        [{"tool": "shell", "action": "allow", "conditions": conditions}, rule("allow", "program", "cd")]
    )

    assert shell(engine, command).decision == decision
