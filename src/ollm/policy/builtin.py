"""The rules that stand when nothing is configured: reading runs, writing and running ask."""

from __future__ import annotations

from ollm.domain.tools import Access, Decision, Location, Risk, RuleReference
from ollm.policy.rules import Rule

READ_TOOLS = frozenset({"read_file", "read_many_files", "glob", "grep", "ls", "recall"})
NOTE_TOOLS = frozenset({"memory", "write_todos", "goal"})
WRITE_TOOLS = frozenset({"write_file", "edit_file"})
WEB_TOOLS = frozenset({"web_fetch", "web_search"})
TOOL_RISKS = {"write_file": Risk.MEDIUM, "edit_file": Risk.MEDIUM, "shell": Risk.HIGH, "web_fetch": Risk.MEDIUM}


def _make_rule(tool: str, action: Decision, risk: Risk, message: str) -> Rule:
    reference = RuleReference(layer="built-in", text=f"{action} {tool}")
    return Rule(tool=tool, action=action, reference=reference, risk=risk, message=message)


BUILTIN_RULES: tuple[Rule, ...] = (
    *(_make_rule(name, "allow", Risk.LOW, "it only reads") for name in sorted(READ_TOOLS)),
    *(_make_rule(name, "allow", Risk.LOW, "it keeps the agent's own notes") for name in sorted(NOTE_TOOLS)),
    *(_make_rule(name, "ask", Risk.MEDIUM, "it changes files") for name in sorted(WRITE_TOOLS)),
    *(_make_rule(name, "ask", Risk.MEDIUM, "it sends something to another computer") for name in sorted(WEB_TOOLS)),
    _make_rule("shell", "ask", Risk.HIGH, "it is not known to only read"),
)

READ_ONLY_COMMAND_RULE = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, commands known to only read"),
    risk=Risk.LOW,
    message="it is known to only read",
)

BACKGROUND_COMMAND_RULE = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, a background command by its id"),
    risk=Risk.LOW,
    message="it looks after a command that was allowed to start",
)


def find_locations(tool: str, params: dict[str, object]) -> tuple[Location, ...]:
    """What a call touches, from its parameters alone: for tools that did not say so themselves."""
    access: Access = "write" if tool in WRITE_TOOLS else "run" if tool == "shell" else "read"
    given = [params.get("cwd")] if tool == "shell" else [params.get("path"), *_as_list(params.get("paths"))]
    if tool == "glob" and isinstance(params.get("pattern"), str):
        pattern = str(params["pattern"])
        given.append(pattern if pattern.startswith(("/", "..")) or "/../" in pattern else None)
    return tuple(Location(target=target, access=access) for target in given if isinstance(target, str) and target)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []
