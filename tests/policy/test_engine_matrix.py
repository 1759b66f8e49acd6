"""Every kind of call at every approval level, with and without a box, with rules and grants: all that is said of it."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.tools import Location, PolicyRequest, Risk
from ollm.policy.engine import PolicyEngine
from ollm.policy.grants import GrantBook
from ollm.policy.rules import RuleSet, RuleSource, read_rules
from ollm.system.sandbox.sandbox import Sandbox
from tests.policy.conftest import Place, rule
from tests.policy.told_verdicts import check_told

CALLS: dict[str, dict[str, Any]] = {
    "read": {"tool": "read_file", "params": {"path": "a"}},
    "read a secret": {"tool": "read_file", "params": {"path": ".env"}},
    "read outside": {"tool": "read_file", "params": {"path": "../secret"}},
    "read many": {"tool": "read_many_files", "params": {"paths": ["a", "src/a.py"]}},
    "list": {"tool": "ls", "params": {"path": "src"}},
    "write": {"tool": "write_file", "params": {"path": "a", "content": "x"}},
    "write below": {"tool": "write_file", "params": {"path": "./src/../src/new.py", "content": "x"}},
    "write settings": {"tool": "write_file", "params": {"path": ".git/config", "content": "x"}},
    "write outside": {"tool": "edit_file", "params": {"path": "/etc/passwd"}},
    "fetch": {"tool": "web_fetch", "params": {"url": "https://Docs.Example.com:8080/x"}},
    "fetch nothing": {"tool": "web_fetch", "params": {"url": "http://["}},
    "search": {"tool": "web_search", "params": {"query": "words"}},
    "note": {"tool": "memory", "params": {"action": "set"}},
    "foreign": {"tool": "mcp_x_do", "params": {"path": "a"}, "identity": "abc", "risk": Risk.MEDIUM},
    "foreign that reads": {"tool": "mcp_x_look", "params": {}, "reads_only": True},
    "foreign that says it reads": {
        "tool": "mcp_x_look", "params": {}, "reads_only": True, "locations": (Location(target="a", access="write"),),
    },
    "unknown": {"tool": "frobnicate", "params": {}},
    "job": {"tool": "shell", "params": {"id": "job-1", "action": "read"}},
    "no command": {"tool": "shell", "params": {}},
    "exact": {"tool": "shell", "params": {"command": "ls"}},
    "reads": {"tool": "shell", "params": {"command": "grep x a"}},
    "runs": {"tool": "shell", "params": {"command": "frob a"}},
    "secret": {"tool": "shell", "params": {"command": "cat .env"}},
    "removes": {"tool": "shell", "params": {"command": "rm x"}},
    "outside": {"tool": "shell", "params": {"command": "ls", "outside": True, "why": "it needs\nthe network"}},
    "outside unasked": {"tool": "shell", "params": {"command": "frob", "outside": True}},
    "elsewhere": {"tool": "shell", "params": {"command": "ls", "cwd": "../"}},
    "below": {"tool": "shell", "params": {"command": "ls", "cwd": "src"}},
    "not outside": {"tool": "shell", "params": {"command": "ls", "outside": "true"}},
}  # fmt: skip
RULED = [
    rule("deny", "program", "rm"),
    {"tool": "mcp_x_*", "action": "allow", "message": "the team says so"},
    {"tool": "web_fetch", "action": "deny"},
    {"tool": "*", "action": "ask", "conditions": [{"param": "path", "operator": "under", "value": "src"}]},
]
THEIRS = [{"tool": "read_file", "action": "deny"}, {"tool": "*", "action": "ask"}, rule("deny", "program", "frob")]
PLAIN = {"ruled": [None, "deny", "allow", None, None], "tightened": ["deny", None, None, None, None]}
BOXES = {"no box": None, "none": ("none", False), "full": ("full", False), "full, approving": ("full", True)}


def make_engine(place: Place, approval: Any, box: str, rules: str, home: Path) -> PolicyEngine:
    sandbox = None
    if chosen := BOXES[box]:
        sandbox = Sandbox(place.workspace, place.home, auto_approve=chosen[1])
        sandbox.level = chosen[0]  # type: ignore[assignment]
    own = read_rules(RULED, RuleSource(file="config.yaml", lines=(1,))) if rules == "ruled" else ()
    theirs = read_rules(THEIRS, RuleSource(workspace=True)) if rules == "tightened" else ()
    grants = GrantBook(home / "grants.yaml")
    if rules == "granted":
        for text in ("write_file:src/*", "web_fetch:*.example.com", "mcp_x_do:#abc", "shell:frob", "read_file:**"):
            grants.add(text, "session")
    return PolicyEngine(
        RuleSet(
            rules=(*own, *theirs), default_action="deny" if rules == "denied" else "ask", builtin=rules != "denied"
        ),
        place.boundary,
        grants=grants,
        approval=approval,
        trusted=True,
        sandbox=sandbox,
    )


@pytest.mark.parametrize("approval", ["ask", "accept-edits", "yolo", "read-only"])
@pytest.mark.parametrize(
    ("box", "rules"),
    [*((box, "plain") for box in BOXES), *(("full", rules) for rules in ("ruled", "tightened", "granted", "denied"))],
)
def test_all_that_is_said_of_every_kind_of_call(
    place: Place, tmp_path: Path, approval: str, box: str, rules: str
) -> None:
    engine = make_engine(place, approval, box, rules, tmp_path)
    for name, call in CALLS.items():
        verdict = engine.evaluate(PolicyRequest(**{"risk": Risk.LOW, **call}))
        check_told(verdict, place, name, f"{approval}, {box}, {rules}")
        assert not (approval == "read-only" and name.startswith(("write", "runs", "removes", "outside"))) or (
            verdict.decision == "deny"
        )
    tools = ("read_file", "web_fetch", "mcp_x_do", "shell", "frobnicate")
    plain = [engine.get_plain_action(tool) for tool in tools]
    assert plain == PLAIN.get(rules, [None] * 5)
