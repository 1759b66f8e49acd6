"""The rules that stand when nothing is configured: reading runs, writing and running ask."""

from __future__ import annotations

from ollm.domain.tools import Access, Decision, Location, Risk, RuleReference
from ollm.policy.rules import Rule

READERS = frozenset({"read_file", "read_many_files", "glob", "grep", "ls", "recall"})
OWN_RECORDS = frozenset({"memory", "write_todos", "goal"})
WRITERS = frozenset({"write_file", "edit_file"})
WEB = frozenset({"web_fetch", "web_search"})
RISKS = {"write_file": Risk.MEDIUM, "edit_file": Risk.MEDIUM, "shell": Risk.HIGH, "web_fetch": Risk.MEDIUM}


def _rule(tool: str, action: Decision, risk: Risk, message: str) -> Rule:
    reference = RuleReference(layer="built-in", text=f"{action} {tool}")
    return Rule(tool=tool, action=action, reference=reference, risk=risk, message=message)


BUILTIN_RULES: tuple[Rule, ...] = (
    *(_rule(name, "allow", Risk.LOW, "it only reads") for name in sorted(READERS)),
    *(_rule(name, "allow", Risk.LOW, "it keeps the agent's own notes") for name in sorted(OWN_RECORDS)),
    *(_rule(name, "ask", Risk.MEDIUM, "it changes files") for name in sorted(WRITERS)),
    *(_rule(name, "ask", Risk.MEDIUM, "it sends something to another computer") for name in sorted(WEB)),
    _rule("shell", "ask", Risk.HIGH, "it is not known to only read"),
)

READING_COMMAND = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, commands known to only read"),
    risk=Risk.LOW,
    message="it is known to only read",
)

RUNNING_COMMAND = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, a background command by its id"),
    risk=Risk.LOW,
    message="it looks after a command that was allowed to start",
)


def locations_of(tool: str, params: dict[str, object]) -> tuple[Location, ...]:
    """What a call touches, from its parameters alone: for tools that did not say so themselves."""
    access: Access = "write" if tool in WRITERS else "run" if tool == "shell" else "read"
    given = [params.get("cwd")] if tool == "shell" else [params.get("path"), *_listed(params.get("paths"))]
    if tool == "glob" and isinstance(params.get("pattern"), str):
        pattern = str(params["pattern"])
        given.append(pattern if pattern.startswith(("/", "..")) or "/../" in pattern else None)
    return tuple(Location(target=target, access=access) for target in given if isinstance(target, str) and target)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []
