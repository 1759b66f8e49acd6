"""Decides whether a call may run: allow, ask or deny, and why (T7).

The first group with a matching rule decides: configured rules naming the tool, configured rules for `*`, built-in
rules, the default action. A workspace's rules are applied on top and can only tighten the result. Then a grant or the
approval level may answer an ask. Protected files and paths outside the workspace are checked last and always need a
confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.context import Approval
from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import Lazy
from ollm.domain.struct import Data
from ollm.domain.tools import Access, Decision, Location, PolicyRequest, Risk, RuleReference, ToolCategory, Verdict
from ollm.policy.grants import GrantBook, covers_call, suggest_grant
from ollm.policy.rules import (
    BACKGROUND_COMMAND_RULE,
    CATEGORY_RULES,
    FIND_TOOL,
    KNOWN_CATEGORIES,
    READING_CATEGORIES,
    STRICTNESS,
    Rule,
    RuleSet,
    explain_steering,
    find_glob_base,
    find_locations,
    is_system_file,
    list_builtin_rules,
    rule_matches,
)
from ollm.system.paths import Boundary
from ollm.system.terminal_text import render_command

if TYPE_CHECKING:
    from ollm.policy.shell.verdict import JudgedLine, ShellJudge
    from ollm.system.sandbox.box import Level
    from ollm.system.sandbox.sandbox import Sandbox

_GLOB_CHARACTERS = frozenset("*?[")


class PathConcern(Data, frozen=True):
    """A reason to ask about a path or refuse it. `resolved` are the paths that an approval opens. Only a person can
    answer it if it is `locked`."""

    decision: Literal["ask", "deny"]
    text: str
    error_type: str = "Denied"
    resolved: tuple[str, ...] = ()
    locked: bool = True


def find_strictest_concern(boundary: Boundary, locations: Iterable[Location]) -> PathConcern | None:
    """Return the strictest concern about the paths of a call, with all the paths that an approval opens."""
    concerns = [found for location in locations if (found := find_concern(boundary, location.target, location.access))]
    refused = next((found for found in concerns if found.decision == "deny"), None)
    if refused is not None or not concerns:
        return refused
    paths = tuple(dict.fromkeys(path for found in concerns for path in found.resolved))
    text = "; ".join(dict.fromkeys(found.text for found in concerns))
    return PathConcern(decision="ask", text=text, resolved=paths, locked=any(found.locked for found in concerns))


def find_concern(boundary: Boundary, target: str, access: Access) -> PathConcern | None:
    """Return the concern about one path. Reading outside the workspace or touching a protected name asks; writing or
    running a command outside is refused."""
    if "://" in target:
        return None
    try:
        judged = boundary.judge(target)
        fixed = judged if not _GLOB_CHARACTERS & set(target) else boundary.judge(find_glob_base(target))
    except ToolFailure as failure:
        return PathConcern(decision="ask", text=str(failure))
    inside = judged.inside and fixed.inside
    reason = None if access == "run" else judged.read_protection if access == "read" else judged.write_protection
    if inside and reason is None:
        return None
    if access == "read" and boundary.is_readable(judged) and boundary.is_readable(fixed):
        return None
    if not inside:
        return _make_outside_concern(boundary, target, access, fixed.resolved)
    verb = "reading" if access == "read" else "writing"
    return PathConcern(decision="ask", text=f"{verb} {target}: {reason}", resolved=(str(judged.resolved),))


def _make_outside_concern(boundary: Boundary, target: str, access: Access, resolved: Path) -> PathConcern:
    if access == "read":
        text, locked = f"{target} is outside the workspace", not is_system_file(resolved)
        return PathConcern(decision="ask", text=text, resolved=(str(resolved),), locked=locked)
    text = f"{target} is outside the workspace {boundary.workspace}; writing and running there is not allowed"
    return PathConcern(decision="deny", text=text, error_type="OutsideWorkspace")


class PolicyEngine:
    """Decides about tool calls; its only side effect is resolving paths. `approval` may be changed between calls.
    `categories` maps each built-in tool to its category, which selects the built-in rules."""

    def __init__(
        self,
        rules: RuleSet,
        boundary: Boundary,
        *,
        grants: GrantBook | None = None,
        approval: Approval = "ask",
        categories: Mapping[str, ToolCategory] = KNOWN_CATEGORIES,
        sandbox: Lazy[Sandbox] | None = None,
    ) -> None:
        """`sandbox` is the sandbox in which allowed commands run."""
        self.rules = rules
        self.boundary = boundary
        self.grants = grants or GrantBook()
        self.approval: Approval = approval
        self.categories = categories
        self.find_newer_rules: Callable[[], RuleSet | None] = lambda: None
        self._sandbox = sandbox

    @cached_property
    def builtin_rules(self) -> dict[str, Rule]:
        return {rule.tool: rule for rule in list_builtin_rules({**self.categories, FIND_TOOL: "read"})}

    @cached_property
    def _shell(self) -> ShellJudge:
        """Created for the first command: the shell analysis imports twenty modules."""
        from ollm.policy.shell.verdict import ShellJudge

        return ShellJudge(self.rules, self.boundary, find_level=self._find_level)

    def _find_level(self) -> Level:
        return "none" if self._sandbox is None else self._sandbox.get().level

    def evaluate(self, request: PolicyRequest) -> Verdict:
        """Return the verdict. Rules written since count if they are stricter: a person who adds a rule to a file means
        the conversation that is open, and one who loosens a rule may have meant another."""
        verdict, other = self._judge(request), copy(self)
        if not other.adopt_newer_rules():
            return verdict
        return max(verdict, other.evaluate(request), key=lambda one: STRICTNESS[one.decision])

    def adopt_newer_rules(self) -> bool:
        """Use the rules written since alone, also where they allow more. Returns False if there are none."""
        newer = self.find_newer_rules()
        if newer is None or newer is self.rules:
            return False
        self.rules = newer
        self.__dict__.pop("_shell", None)
        return True

    def _judge(self, request: PolicyRequest) -> Verdict:
        if request.tool == "shell" and isinstance(request.params.get("command"), str):
            return self._evaluate_shell(request)
        verdict = self._apply_rule(request, self._find_rule(request))
        if verdict.decision == "ask":
            verdict = self._apply_grants(request, verdict)
        verdict = self._apply_protection(request, verdict)
        if verdict.decision == "ask" and not verdict.locked and not verdict.approve:
            reason = "; ".join((verdict.reason, *self._list_steering(request)))
            return msgspec.structs.replace(verdict, reason=reason, grant=suggest_grant(request, self.boundary))
        return verdict

    def _list_steering(self, request: PolicyRequest) -> list[str]:
        paths = [
            one.target for one in self._find_locations(request) if one.access == "write" and "://" not in one.target
        ]
        named = (explain_steering(self.boundary.judge(path), self.boundary) for path in paths)
        return [*filter(None, named)]

    def get_plain_action(self, tool: str) -> Decision | None:
        """Return the decision of configured rules that ignore parameters, or None if no such rule matches."""
        request = PolicyRequest(tool=tool, params={})
        rule = self._find_rule(request)
        return rule.action if rule is not None and rule.reference.layer != "built-in" else None

    def _find_rule(self, request: PolicyRequest) -> Rule | None:
        def weigh(rule: Rule) -> float | None:
            return STRICTNESS[rule.action] if rule_matches(rule, request.params, self.boundary) else None

        managing = _manages_background_command(request)
        builtin = BACKGROUND_COMMAND_RULE if managing else self.builtin_rules.get(request.tool)
        found = self.rules.find_rule(request.tool, weigh, builtin)
        return None if found is None else found[0]

    def _apply_rule(self, request: PolicyRequest, rule: Rule | None) -> Verdict:
        category = self.categories.get(request.tool)
        risk = CATEGORY_RULES[category][1] if category in ("write", "web", "run") else request.risk
        if rule is None:
            action = self.rules.default_action
            text = f"no rule matches {request.tool}; the default is {action}"
            reference = RuleReference(layer="default", text=f"defaultAction: {action}")
            return Verdict(decision=action, reason=text, risk=risk, rule=reference)
        return Verdict(decision=rule.action, reason=rule.reason, risk=rule.risk or risk, rule=rule.reference)

    def _apply_grants(self, request: PolicyRequest, verdict: Verdict) -> Verdict:
        for grant in self.grants.list_grants():
            if covers_call(grant, request, self.boundary):
                return change_verdict(verdict, "allow", f"granted: {grant}", "grant", str(grant))
        edits = self.categories.get(request.tool) == "write"
        if self.approval == "yolo" or (self.approval == "accept-edits" and edits):
            reason = f"the approval level is {self.approval}"
            return change_verdict(verdict, "allow", reason, "approval", self.approval)
        return verdict

    def _apply_protection(self, request: PolicyRequest, verdict: Verdict) -> Verdict:
        if verdict.decision == "deny":
            return verdict
        verdict = self._apply_concerns(verdict, self._find_locations(request))
        if self.approval == "read-only" and verdict.decision != "deny" and not self._only_reads(request):
            return verdict if self._is_foreign_allowed(request, verdict) else deny_read_only(verdict)
        return verdict

    def _is_foreign_allowed(self, request: PolicyRequest, verdict: Verdict) -> bool:
        """Return True if a user's rule allows an external tool by name: we have no category for such a tool."""
        rule = self._find_rule(request)
        named = rule is not None and rule.names_tool(request.tool) and rule.reference.layer == "configured"
        return named and verdict.decision == "allow" and request.tool not in self.categories

    def _find_locations(self, request: PolicyRequest) -> Sequence[Location]:
        return request.locations or find_locations(request.tool, self.categories.get(request.tool), request.params)

    def _apply_concerns(self, verdict: Verdict, locations: Sequence[Location]) -> Verdict:
        concern = find_strictest_concern(self.boundary, locations)
        if concern is None:
            return verdict
        return change_verdict(
            verdict,
            concern.decision,
            concern.text,
            "protection",
            concern.text,
            locked=concern.locked,
            risk=Risk.HIGH,
            error_type=concern.error_type,
            approve=() if concern.decision == "deny" else concern.resolved,
        )

    def _only_reads(self, request: PolicyRequest) -> bool:
        if _manages_background_command(request):
            return True
        known = self.categories.get(request.tool) in READING_CATEGORIES
        return (known or request.reads_only) and all(location.access == "read" for location in request.locations)

    def _evaluate_shell(self, request: PolicyRequest) -> Verdict:
        judged = self._shell.judge(request.params, self.grants.list_grants(), self.approval)
        if judged.verdict.decision == "deny":
            return judged.verdict
        verdict = self._apply_concerns(self._apply_sandbox(judged), find_locations("shell", "run", request.params))
        outside = request.params.get("outside") is True
        if self.approval == "read-only" and verdict.decision != "deny" and (outside or not judged.reads):
            return deny_read_only(verdict)
        if outside:
            return ask_about_outside(verdict, str(request.params.get("why", "")))
        kept = judged.outside if self._find_level() != "none" else ""
        return msgspec.structs.replace(ask_about_outside(verdict, kept), outside=True) if kept else verdict

    def _apply_sandbox(self, judged: JudgedLine) -> Verdict:
        """Apply the sandbox to a decision. Without a sandbox, only the simplest reading commands run without a
        question. A full sandbox may replace a question, except one from a user's rule."""
        verdict = judged.verdict
        if self._sandbox is None:
            return verdict
        sandbox = self._sandbox.get()
        if verdict.decision == "allow" and verdict.reads and _is_by(verdict, "built-in") and not judged.exact:
            if sandbox.level != "none":
                return verdict
            reason = "it should only read, but there is no sandbox to hold it to that"
            return change_verdict(verdict, "ask", reason, "sandbox", sandbox.description)
        open_question = verdict.decision == "ask" and not verdict.locked and not _is_by(verdict, "configured")
        if open_question and sandbox.approves_itself:
            return change_verdict(verdict, "allow", "it runs in a sandbox that holds it", "sandbox", "autoApprove")
        return verdict


def _is_by(verdict: Verdict, layer: str) -> bool:
    return verdict.rule is not None and verdict.rule.layer == layer


def change_verdict(verdict: Verdict, decision: Decision, reason: str, layer: str, text: str, **changes: Any) -> Verdict:
    """Return the verdict with another decision, which the layer made."""
    rule = RuleReference(layer=layer, text=text)
    return msgspec.structs.replace(verdict, decision=decision, reason=reason, rule=rule, **changes)


def ask_about_outside(verdict: Verdict, why: str) -> Verdict:
    """Ask about a command that is to run outside the sandbox, every time."""
    if verdict.decision == "deny":
        return verdict
    reason = f"it runs outside the sandbox: {render_command(why) or 'no reason was given'}"
    text = f"{reason}; {verdict.reason}" if verdict.decision == "ask" else reason
    return change_verdict(verdict, "ask", text, "sandbox", "outside", locked=True, risk=Risk.HIGH)


def deny_read_only(verdict: Verdict) -> Verdict:
    reason = "the approval level is read-only, and this may modify files"
    return change_verdict(verdict, "deny", reason, "approval", "read-only", locked=False)


def _manages_background_command(request: PolicyRequest) -> bool:
    """Return True for reading, waiting for or stopping a background command, which was judged at its start."""
    return request.tool == "shell" and "command" not in request.params and "id" in request.params
