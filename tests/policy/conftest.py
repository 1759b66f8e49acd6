"""A workspace with files, links that lead out, and a home that is not the tester's own."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.tools import PolicyRequest, Verdict
from ollm.policy.engine import PolicyEngine
from ollm.policy.grants import Grant
from ollm.policy.rules import RuleSet, read_rules
from ollm.policy.shell.verdict import ShellJudge
from ollm.system.paths import Boundary
from ollm.system.sandbox.box import Level

FILES = ("src/a.py", "src/b.py", "README.md", "package.json", ".env", "a", "b", "x")


class Place:
    """The directories the tests run in, and engines over them."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.home = root / "home"
        for directory in (self.workspace / "src", self.home / ".ssh", self.home / ".ollm"):
            directory.mkdir(parents=True)
        for name in FILES:
            (self.workspace / name).write_text("x\n", encoding="utf-8")
        (root / "secret").write_text("s\n", encoding="utf-8")
        (self.workspace / "src/link-out").symlink_to(root / "secret")
        (self.workspace / "src/dir-out").symlink_to("/etc")
        (self.workspace / "out").symlink_to("/etc")
        self.boundary = Boundary.around(self.workspace, user_home=self.home, ollm_home=self.home / ".ollm")

    def engine(self, rules: list[dict[str, Any]] | None = None, default: Any = "ask", **settings: Any) -> PolicyEngine:
        """With rules, these alone decide; without, the built-in ones."""
        if rules is None:
            return PolicyEngine(RuleSet(default_action=default), self.boundary, **settings)
        given = RuleSet(rules=read_rules(rules), default_action=default, builtin=False)
        return PolicyEngine(given, self.boundary, **settings)


def shell(engine: PolicyEngine, command: str, **params: Any) -> Verdict:
    return engine.evaluate(PolicyRequest(tool="shell", params={"command": command, **params}))


def judge(place: Place, line: str, level: Level = "landlock", *grants: str) -> Verdict:
    """The built-in rules at a level of the box."""
    shell = ShellJudge(place.engine().rules, place.boundary, find_level=lambda: level)
    return shell.judge({"command": line}, [Grant(tool="shell", text=text) for text in grants], "ask").verdict


def name_verdict(verdict: Verdict) -> str:
    return "lock" if verdict.locked else verdict.decision


def rule(action: str, operator: str, value: Any, **more: Any) -> dict[str, Any]:
    """A rule about shell's command."""
    condition = {"param": "command", "operator": operator, "value": value, **more}
    return {"tool": "shell", "action": action, "conditions": [condition]}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("policy"))
