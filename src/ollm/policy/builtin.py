"""The rules that apply when nothing is configured: reading runs, writing and running ask."""

from __future__ import annotations

from collections.abc import Mapping

from ollm.domain.tools import Access, Decision, Location, Risk, RuleReference, ToolCategory
from ollm.policy.rules import Rule

# What happens to a tool of each category, in the order `policy show` lists them.
CATEGORY_RULES: dict[ToolCategory, tuple[Decision, Risk, str]] = {
    "read": ("allow", Risk.LOW, "it only reads"),
    "notes": ("allow", Risk.LOW, "it only updates the agent's notes"),
    "write": ("ask", Risk.MEDIUM, "it changes files"),
    "web": ("ask", Risk.MEDIUM, "it sends data to another computer"),
    "run": ("ask", Risk.HIGH, "it may modify files"),
}
READING_CATEGORIES: frozenset[ToolCategory] = frozenset({"read", "notes", "web"})
FIND_TOOL = "find_tool"  # finds tools from outside by words: known wherever there are such tools
# For an engine that is not handed what the classes of the tools say.
KNOWN_CATEGORIES: Mapping[str, ToolCategory] = {
    **dict.fromkeys(("read_file", "read_many_files", "glob", "grep", "ls", "recall", "outline", "task"), "read"),
    **dict.fromkeys(("memory", "write_todos", "goal"), "notes"),
    **dict.fromkeys(("write_file", "edit_file"), "write"),
    **dict.fromkeys(("web_fetch", "web_search"), "web"),
    "shell": "run",
}


def make_builtin_rule(tool: str, category: ToolCategory) -> Rule:
    action, risk, message = CATEGORY_RULES[category]
    reference = RuleReference(layer="built-in", text=f"{action} {tool}")
    return Rule(tool=tool, action=action, reference=reference, risk=risk, message=message)


def list_builtin_rules(categories: Mapping[str, ToolCategory]) -> tuple[Rule, ...]:
    order = list(CATEGORY_RULES)
    found = sorted(categories.items(), key=lambda item: (order.index(item[1]), item[0]))
    return tuple(make_builtin_rule(tool, category) for tool, category in found)


SHELL_RULE = make_builtin_rule("shell", "run")

READ_ONLY_COMMAND_RULE = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, commands known to only read"),
    risk=Risk.LOW,
    message="it only reads",
)

BACKGROUND_COMMAND_RULE = Rule(
    tool="shell",
    action="allow",
    reference=RuleReference(layer="built-in", text="allow shell, a background command by its id"),
    risk=Risk.LOW,
    message="it controls a command that was already allowed",
)


def find_locations(tool: str, category: ToolCategory | None, params: dict[str, object]) -> tuple[Location, ...]:
    """Find the paths a call touches from its parameters, for tools that do not declare them."""
    access: Access = category if category in ("write", "run") else "read"
    given = [params.get("cwd")] if tool == "shell" else [params.get("path"), *_as_list(params.get("paths"))]
    if tool == "glob" and isinstance(params.get("pattern"), str):
        pattern = str(params["pattern"])
        given.append(pattern if pattern.startswith(("/", "..")) or "/../" in pattern else None)
    return tuple(Location(target=target, access=access) for target in given if isinstance(target, str) and target)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []
