"""Policy rules as people write them (T7), read into data with every mistake told.

A rule that cannot be read is not dropped: it becomes a rule that makes its tool ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

from ollm.domain.struct import Data
from ollm.domain.tools import Decision, Risk, RuleReference

Operator = Literal["equals", "contains", "startsWith", "matches", "under", "program"]
OPERATORS: tuple[str, ...] = get_args(Operator)
ACTIONS: tuple[str, ...] = get_args(Decision)
STRICTNESS: dict[str, int] = {action: place for place, action in enumerate(("allow", "ask", "deny"))}
RULE_KEYS = {"tool", "action", "conditions", "risk", "message"}
CONDITION_KEYS = {"param", "operator", "value", "flags"}


class Condition(Data, frozen=True):
    """One test of one parameter; any of `values` will do. `flags` go with the operator program."""

    param: str
    operator: Operator
    values: tuple[Any, ...]
    flags: tuple[str, ...] = ()

    def describe(self) -> str:
        wanted = " | ".join(str(value) for value in self.values)
        flags = f" with {', '.join(self.flags)}" if self.flags else ""
        return f"{self.param} {self.operator} {wanted}{flags}"


class Rule(Data, frozen=True):
    """`problem` says why an entry could not be read; such a rule asks. One that `tightens` is laid over what the other
    rules decide and can only make it stricter: it comes from a workspace."""

    tool: str
    action: Decision
    reference: RuleReference
    conditions: tuple[Condition, ...] = ()
    risk: Risk | None = None
    message: str = ""
    problem: str = ""
    tightens: bool = False


class RuleSet(Data, frozen=True):
    """Everything that was configured. With `builtin` false the built-in rules do not count (`--rules FILE`)."""

    rules: tuple[Rule, ...] = ()
    default_action: Decision = "ask"
    builtin: bool = True

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(rule.problem for rule in self.rules if rule.problem)


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
    """An entry that cannot be read, and why."""


def read_rules(entries: Sequence[Any], source: RuleSource | None = None) -> tuple[Rule, ...]:
    """The entries in their order, bad ones as rules that ask."""
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
    if not isinstance(entry, Mapping):
        raise BadRuleError("it is not a mapping")
    _check_keys(entry, RULE_KEYS)
    tool, action = entry.get("tool"), entry.get("action")
    if not isinstance(tool, str) or not tool:
        raise BadRuleError("tool must be a name or *")
    if action not in ACTIONS:
        raise BadRuleError(f"action must be one of {', '.join(ACTIONS)}")
    listed = entry.get("conditions")
    if listed is None:
        listed = []
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise BadRuleError("conditions must be a list")
    conditions = tuple(_parse_condition(one) for one in listed)
    text = f"{action} {tool}" + "".join(f", {one.describe()}" for one in conditions)
    return Rule(
        tool=tool,
        action=action,
        reference=source.make_reference(index, text),
        conditions=conditions,
        risk=_parse_risk(entry.get("risk")),
        message=_parse_text(entry.get("message"), "message"),
        tightens=source.workspace,
    )


def _parse_condition(entry: Any) -> Condition:
    if not isinstance(entry, Mapping):
        raise BadRuleError("a condition is not a mapping")
    _check_keys(entry, CONDITION_KEYS)
    param, operator = entry.get("param"), entry.get("operator")
    if not isinstance(param, str) or not param:
        raise BadRuleError("a condition needs a param")
    if operator not in OPERATORS:
        raise BadRuleError(f"operator must be one of {', '.join(OPERATORS)}")
    if entry.get("value") is None:
        raise BadRuleError("a condition needs a value")
    values = _as_tuple(entry["value"])
    if not values:
        raise BadRuleError("a condition needs a value")
    if operator != "equals" and not all(isinstance(value, str) and value for value in values):
        raise BadRuleError(f"the value of {operator} must be text")
    flags = _as_tuple(entry.get("flags", ()))
    if not all(isinstance(flag, str) and flag.strip("-") for flag in flags):
        raise BadRuleError("flags must be names")
    if flags and operator != "program":
        raise BadRuleError("flags go with the operator program")
    if operator == "matches":
        for value in values:
            compile_pattern(value)
    return Condition(param=param, operator=operator, values=values, flags=tuple(str(flag) for flag in flags))


@cache
def compile_pattern(text: str, *, longest: bool = False) -> Any:
    """The expression compiled by RE2, which takes linear time whatever it is given."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.longest_match = longest
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else error
        raise BadRuleError(f"{text!r} is not a regular expression: {why}") from error


def find_strictest_rule(rules: Iterable[Rule]) -> Rule | None:
    """Deny beats ask beats allow; among equals the one written first."""
    return max(rules, key=lambda rule: STRICTNESS[rule.action], default=None)


def _check_keys(entry: Mapping[Any, Any], keys: set[str]) -> None:
    unknown = [str(key) for key in entry if key not in keys]
    if unknown:
        raise BadRuleError(f"unknown key {', '.join(unknown)}")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _parse_risk(value: Any) -> Risk | None:
    if value is None:
        return None
    try:
        return Risk(value)
    except ValueError:
        raise BadRuleError("risk must be low, medium or high") from None


def _parse_text(value: Any, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRuleError(f"{name} must be text")
    return value
