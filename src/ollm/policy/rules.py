"""Policy rules (T7): parses configured rules, reports every mistake in them, and defines the built-in rules.

A rule that cannot be parsed is not dropped: it becomes a rule that makes its tool ask.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, get_args

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Access, Decision, Location, Risk, RuleReference, ToolCategory
from ollm.system.path_names import find_steering_name
from ollm.system.paths import Boundary, Judgement, resolve_path

Operator = Literal["equals", "contains", "startsWith", "matches", "under", "program"]
OPERATORS: tuple[str, ...] = get_args(Operator)
ACTIONS: tuple[str, ...] = get_args(Decision)
STRICTNESS: dict[str, int] = {action: place for place, action in enumerate(("allow", "ask", "deny"))}
RULE_KEYS = {"tool", "action", "conditions", "risk", "message"}
CONDITION_KEYS = {"param", "operator", "value", "flags"}


class Condition(Data, frozen=True):
    """One test of one parameter; any of `values` may match. `flags` belong to the operator `program`."""

    param: str
    operator: Operator
    values: tuple[Any, ...]
    flags: tuple[str, ...] = ()

    def describe(self) -> str:
        wanted = " | ".join(str(value) for value in self.values)
        flags = f" with {', '.join(self.flags)}" if self.flags else ""
        return f"{self.param} {self.operator} {wanted}{flags}"


class Rule(Data, frozen=True):
    """One policy rule. `problem` explains why an entry could not be parsed; such a rule asks. A rule that `tightens`
    comes from a workspace and can only make the decision of the other rules stricter."""

    tool: str
    action: Decision
    reference: RuleReference
    conditions: tuple[Condition, ...] = ()
    risk: Risk | None = None
    message: str = ""
    problem: str = ""
    tightens: bool = False

    @property
    def reason(self) -> str:
        return self.message or f"the rule “{self.reference.text}” says so"

    def names_tool(self, tool: str) -> bool:
        """Return True if the rule names the tool, literally or by a pattern like `mcp_*`. `*` is not a name."""
        return self.tool == tool or ("*" in self.tool and self.tool != "*" and fnmatchcase(tool, self.tool))


class RuleSet(Data, frozen=True):
    """All configured rules. If `builtin` is False, the built-in rules are ignored (`--rules FILE`)."""

    rules: tuple[Rule, ...] = ()
    default_action: Decision = "ask"
    builtin: bool = True

    def is_same(self, other: RuleSet) -> bool:
        """Return True if the other rules decide alike, wherever they are written."""
        ours, theirs = (
            [(one.tool, one.action, one.conditions, one.risk, one.message, one.tightens) for one in rules.rules]
            for rules in (self, other)
        )
        return ours == theirs and self.default_action == other.default_action

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(rule.problem for rule in self.rules if rule.problem)

    def find_rule(
        self, tool: str, weigh: Callable[[Rule], float | None], builtin: Rule | None
    ) -> tuple[Rule, float] | None:
        """Return the rule that decides about a call, and its weight: the strictest rule that names the tool, else the
        strictest for all tools, else the built-in rule. A workspace's rule wins if it is stricter. `weigh` returns None
        for a rule that does not match."""

        def find_strictest(rules: Iterable[Rule]) -> tuple[Rule, float] | None:
            matching = ((rule, weight) for rule in rules if (weight := weigh(rule)) is not None)
            return max(matching, key=itemgetter(1), default=None)

        own = [rule for rule in self.rules if not rule.tightens]
        found = find_strictest(rule for rule in own if rule.names_tool(tool))
        found = found or find_strictest(rule for rule in own if rule.tool == "*")
        if found is None and builtin is not None and self.builtin:
            found = builtin, STRICTNESS[builtin.action]
        theirs = [rule for rule in self.rules if rule.tightens and (rule.tool == "*" or rule.names_tool(tool))]
        stricter = find_strictest(theirs)
        weight = STRICTNESS[self.default_action] if found is None else found[1]
        return stricter if stricter is not None and stricter[1] > weight else found


class RuleSource(Data, frozen=True):
    """Origin of rules. `workspace` sources may not allow anything."""

    layer: str = "configured"
    file: str | None = None
    lines: tuple[int | None, ...] = ()
    workspace: bool = False

    def make_reference(self, index: int, text: str) -> RuleReference:
        line = self.lines[index] if index < len(self.lines) else None
        return RuleReference(layer=self.layer, text=text, file=self.file, line=line)


class BadRuleError(ValueError):
    """A malformed rule entry, with the reason."""


def read_rules(entries: Sequence[Any], source: RuleSource | None = None) -> tuple[Rule, ...]:
    """Parse the entries in order; malformed ones become rules that ask."""
    where = source or RuleSource()
    found = (_read_rule(entry, index, where) for index, entry in enumerate(entries))
    return tuple(rule for rule in found if rule is not None)


def _read_rule(entry: Any, index: int, source: RuleSource) -> Rule | None:
    try:
        rule = _parse_rule(entry, index, source)
    except BadRuleError as error:
        tool = entry.get("tool") if isinstance(entry, Mapping) else None
        tool = tool if isinstance(tool, str) and tool else "*"
        reference = source.make_reference(index, f"rule {index + 1}")
        place = f"The rule at {reference.file}:{reference.line}" if reference.line else f"Rule {index + 1}"
        problem = f"{place} is invalid ({error}), so {'everything' if tool == '*' else tool} asks."
        return Rule(
            tool=tool,
            action="ask",
            reference=reference,
            problem=problem,
            message=problem,
            tightens=source.workspace,
        )
    return None if source.workspace and rule.action == "allow" else rule


def _parse_rule(entry: Any, index: int, source: RuleSource) -> Rule:
    _require(isinstance(entry, Mapping), "it is not a mapping")
    _check_keys(entry, RULE_KEYS)
    tool, action, risk, message = (entry.get(key) for key in ("tool", "action", "risk", "message"))
    _require(isinstance(tool, str) and tool, "tool must be a name or *")
    _require(action in ACTIONS, f"action must be one of {', '.join(ACTIONS)}")
    listed = [] if entry.get("conditions") is None else entry["conditions"]
    _require(isinstance(listed, Sequence) and not isinstance(listed, str), "conditions must be a list")
    _require(risk is None or risk in list(Risk), "risk must be low, medium or high")
    _require(message is None or isinstance(message, str), "message must be text")
    conditions = tuple(_parse_condition(one) for one in listed)
    text = f"{action} {tool}" + "".join(f", {one.describe()}" for one in conditions)
    return Rule(
        tool=tool,
        action=action,
        reference=source.make_reference(index, text),
        conditions=conditions,
        risk=None if risk is None else Risk(risk),
        message=message or "",
        tightens=source.workspace,
    )


def _parse_condition(entry: Any) -> Condition:
    _require(isinstance(entry, Mapping), "a condition is not a mapping")
    _check_keys(entry, CONDITION_KEYS)
    param, operator = entry.get("param"), entry.get("operator")
    values, flags = _as_tuple(entry.get("value")), _as_tuple(entry.get("flags", ()))
    _require(isinstance(param, str) and param, "a condition needs a param")
    _require(operator in OPERATORS, f"operator must be one of {', '.join(OPERATORS)}")
    _require(values and values != (None,), "a condition needs a value")
    texts = all(isinstance(value, str) and value for value in values)
    _require(operator == "equals" or texts, f"the value of {operator} must be text")
    _require(all(isinstance(flag, str) and flag.strip("-") for flag in flags), "flags must be names")
    _require(not flags or operator == "program", "flags go with the operator program")
    if operator == "matches":
        for value in values:
            compile_pattern(value)
    return Condition(param=param, operator=operator, values=values, flags=flags)


def _require(held: object, problem: str) -> None:
    if not held:
        raise BadRuleError(problem)


@cache
def compile_pattern(text: str, *, longest: bool = False) -> Any:
    """Compile the expression with RE2, which matches in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.longest_match = longest
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else error
        raise BadRuleError(f"{text!r} is not a regular expression: {why}") from error


def _check_keys(entry: Mapping[Any, Any], keys: set[str]) -> None:
    unknown = [str(key) for key in entry if key not in keys]
    _require(not unknown, f"unknown key {', '.join(unknown)}")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


PATH_PARAMETERS = frozenset({"path", "paths", "cwd", "file", "directory"})


def rule_matches(rule: Rule, params: Mapping[str, Any], boundary: Boundary) -> bool:
    allows = rule.action == "allow"
    return all(condition_matches(condition, params, boundary, allows=allows) for condition in rule.conditions)


def condition_matches(condition: Condition, params: Mapping[str, Any], boundary: Boundary, *, allows: bool) -> bool:
    if condition.param not in params:
        return False
    value = params[condition.param]
    items = value if isinstance(value, (list, tuple)) else [value]
    if not items:
        return False
    every = all if allows else any
    return every(_item_matches(condition, item, boundary, allows=allows) for item in items)


def _item_matches(condition: Condition, item: Any, boundary: Boundary, *, allows: bool) -> bool:
    if condition.operator == "under":
        return isinstance(item, str) and any(
            is_under(item, value, boundary, allows=allows) for value in condition.values
        )
    forms = _list_path_forms(condition.param, item, boundary, allows=allows)
    return any(_compare(condition.operator, form, value) for form in forms for value in condition.values)


def _list_path_forms(param: str, item: Any, boundary: Boundary, *, allows: bool) -> list[Any]:
    """List the forms of a path to compare: normalized, relative and absolute; to restrict, also as given."""
    if param not in PATH_PARAMETERS or not isinstance(item, str):
        return [item]
    plain = os.path.normpath(boundary.workspace / item)
    relative = os.path.relpath(plain, boundary.workspace)
    return [relative, plain] if allows else [item, relative, plain]


_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda item, value: value in item,
    "startsWith": lambda item, value: item.startswith(value),
    "matches": lambda item, value: compile_pattern(value).search(item) is not None,
    "program": lambda item, value: item == value,
}


def _compare(operator: str, item: Any, value: Any) -> bool:
    if operator == "equals":
        written = str(item).lower() if isinstance(item, bool) else str(item)
        return bool(item == value) or (not isinstance(item, str) and written == str(value))
    return isinstance(item, str) and operator in _COMPARISONS and _COMPARISONS[operator](item, value)


def is_under(item: str, directory: str, boundary: Boundary, *, allows: bool, base: Path | None = None) -> bool:
    """Return True if a path is a directory or inside it, compared by components after resolving links. To allow, both
    the path as written and its target must be inside; to restrict, one of them is enough."""
    start = base or boundary.workspace
    home = boundary.places.user_home
    if home is not None and (directory == "~" or directory.startswith("~/")):
        directory = str(home / directory[2:])
    written = Path(os.path.normpath(start / item)), Path(os.path.normpath(boundary.workspace / directory))
    try:
        real = resolve_path(item, start), resolve_path(directory, boundary.workspace)
    except ToolFailure:
        return False
    inside = [path.is_relative_to(above) for path, above in (written, real)]
    return all(inside) or (not allows and any(inside)) or (allows and inside[1] and written[0] == real[0])


def find_glob_base(pattern: str) -> str:
    fixed = "/".join(takewhile(lambda part: not set(part) & set("*?["), pattern.split("/")))
    return fixed or ("/" if pattern.startswith("/") else ".")


_SYSTEM_PLACES = ("/usr", "/lib", "/lib32", "/lib64", "/opt")


def is_system_file(path: Path) -> bool:
    """Return True for installed software. Reading it is asked about, and `--yes` answers that question."""
    return any(path.is_relative_to(place) for place in _SYSTEM_PLACES)


def explain_steering(judged: Judgement, boundary: Boundary) -> str:
    """Return what a question about writing a path says of a file that steers other programs, or ""."""
    below = os.path.relpath(judged.named, boundary.workspace)
    name = find_steering_name(below) if judged.inside else None
    return f"{'/'.join(below.split('/')[: name.count('/') + 1])} steers editors, agents or CI" if name else ""


# What happens to a tool of each category, in the order `policy show` lists them.
CATEGORY_RULES: dict[ToolCategory, tuple[Decision, Risk, str]] = {
    "read": ("allow", Risk.LOW, "it only reads"),
    "notes": ("allow", Risk.LOW, "it only updates the agent's notes"),
    "write": ("ask", Risk.MEDIUM, "it changes files"),
    "web": ("ask", Risk.MEDIUM, "it sends data to another computer"),
    "run": ("ask", Risk.MEDIUM, "it may change files or send data"),
}
READING_CATEGORIES: frozenset[ToolCategory] = frozenset({"read", "notes", "web"})
FIND_TOOL = "find_tool"  # It finds external tools, so it exists wherever there are some.
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
