"""Grants for shell commands: which is offered, and what it covers."""

import pytest

from ollm.policy.grants import Grant
from ollm.policy.shell.verdict import ShellJudge
from tests.policy.conftest import Place
from tests.policy.verdict_table import judge

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


@pytest.mark.parametrize(("line", "grant", "prefix"), OFFERED)
def test_what_is_offered_answers_the_line(place: Place, line: str, grant: str, prefix: str | None) -> None:
    shell = ShellJudge(place.engine().rules, place.boundary, trusted=True)
    verdict = shell.judge({"command": line}, [Grant(tool="shell", text=grant.removeprefix("shell:"))], "ask").verdict

    assert verdict.decision == "allow"


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
    shell = ShellJudge(place.engine().rules, place.boundary, trusted=True)
    grants = [Grant(tool="read_file"), Grant(tool="shell", text=grant)]

    assert shell.judge({"command": line}, grants, "ask").verdict.decision == decision
    assert shell.judge({"command": line}, grants[:1], "ask").verdict.decision == "ask"
