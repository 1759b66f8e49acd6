"""Decides whether a call may run: allow, ask or deny, and why (T7).

Groups in order, the first with a match decides: configured rules naming the tool, configured rules for `*`, built-in
rules, the default action. A workspace's rules are laid over that and only tighten it. Then a grant or the approval
level may answer an ask; protected files and paths outside are looked at last and stay a question whatever was said
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.context import Approval
from ollm.domain.tools import ConfirmationDetails, Location, PolicyRequest, Risk, RuleReference, Verdict
from ollm.policy.builtin import BUILTIN_RULES, OWN_RECORDS, READERS, RISKS, RUNNING_COMMAND, WEB, WRITERS, locations_of
from ollm.policy.grants import GrantBook, covers_call, suggest
from ollm.policy.matching import holds
from ollm.policy.protection import Concern, strictest_concern
from ollm.policy.rules import STRICTNESS, Rule, RuleSet, strictest
from ollm.policy.visible import visible_command
from ollm.system.paths import Boundary

if TYPE_CHECKING:
    from ollm.policy.shell.verdict import ShellJudge

_BUILTIN = {rule.tool: rule for rule in BUILTIN_RULES}


class PolicyEngine:
    """Pure but for the file system it resolves paths in. `approval` may be changed between calls."""

    def __init__(
        self,
        rules: RuleSet,
        boundary: Boundary,
        *,
        grants: GrantBook | None = None,
        approval: Approval = "ask",
        trusted: bool = False,
    ) -> None:
        self.rules = rules
        self.boundary = boundary
        self.grants = grants or GrantBook()
        self.approval: Approval = approval
        self.trusted = trusted
        self._grouped: dict[str, tuple[tuple[Rule, ...], ...]] = {}

    @cached_property
    def _shell(self) -> ShellJudge:
        """Built when the first command is judged: what reads shell is twenty modules."""
        from ollm.policy.shell.verdict import ShellJudge

        return ShellJudge(self.rules, self.boundary, trusted=self.trusted)

    def evaluate(self, request: PolicyRequest) -> Verdict:
        """The verdict on one validated call."""
        if request.tool == "shell" and isinstance(request.params.get("command"), str):
            return self._evaluate_shell(request)
        verdict = self._by_rule(request, self._tightened(request, self._group(request)))
        if verdict.decision == "ask":
            verdict = self._answered(request, verdict)
        verdict = self._protected(request, verdict)
        if verdict.decision == "ask" and not verdict.locked:
            return msgspec.structs.replace(verdict, grant=suggest(request.tool, request.params, self.boundary))
        return verdict

    def confirmation(
        self, request: PolicyRequest, verdict: Verdict, call_id: str, description: str
    ) -> ConfirmationDetails:
        """What a person is asked (T7.8). A tool adds its diff with `msgspec.structs.replace`."""
        locations = request.locations or locations_of(request.tool, request.params)
        command = request.params.get("command") if request.tool == "shell" else None
        return ConfirmationDetails(
            call_id=call_id,
            tool=request.tool,
            description=description,
            risk=verdict.risk,
            reason=verdict.reason,
            locations=tuple(dict.fromkeys(location.target for location in locations)),
            command=visible_command(command) if isinstance(command, str) else "",
            parts=verdict.parts,
            grant=None if verdict.locked else verdict.grant,
            locked=verdict.locked,
            rule=verdict.rule,
        )

    def _group(self, request: PolicyRequest) -> Rule | None:
        for group in self._groups(request.tool):
            found = strictest(rule for rule in group if holds(rule, request.params, self.boundary))
            if found is not None:
                return found
        if not self.rules.builtin:
            return None
        return RUNNING_COMMAND if _looks_after_a_command(request) else _BUILTIN.get(request.tool)

    def _tightened(self, request: PolicyRequest, rule: Rule | None) -> Rule | None:
        """What a workspace says in place of the rule, when that is stricter."""
        theirs = [one for one in self.rules.rules if one.tightens and speaks_of(one, request.tool)]
        found = strictest(one for one in theirs if holds(one, request.params, self.boundary))
        action = self.rules.default_action if rule is None else rule.action
        return found if found is not None and STRICTNESS[found.action] > STRICTNESS[action] else rule

    def _groups(self, tool: str) -> tuple[tuple[Rule, ...], ...]:
        if not self.rules.rules:
            return ()
        if tool not in self._grouped:
            own = [rule for rule in self.rules.rules if not rule.tightens]
            named = tuple(rule for rule in own if names_tool(rule, tool))
            general = tuple(rule for rule in own if rule.tool == "*")
            self._grouped[tool] = (named, general)
        return self._grouped[tool]

    def _by_rule(self, request: PolicyRequest, rule: Rule | None) -> Verdict:
        risk = RISKS.get(request.tool, request.risk)
        if rule is None:
            action = self.rules.default_action
            text = f"no rule speaks of {request.tool}, and the default is {action}"
            reference = RuleReference(layer="default", text=f"defaultAction: {action}")
            return Verdict(decision=action, reason=text, risk=risk, rule=reference)
        reason = rule.message or f"the rule “{rule.reference.text}” says so"
        return Verdict(decision=rule.action, reason=reason, risk=rule.risk or risk, rule=rule.reference)

    def _answered(self, request: PolicyRequest, verdict: Verdict) -> Verdict:
        for grant in self.grants.all():
            if covers_call(grant, request.tool, request.params, self.boundary):
                return allowed_by(verdict, "grant", str(grant), f"it was granted: {grant}")
        if self.approval == "yolo" or (self.approval == "accept-edits" and request.tool in WRITERS):
            return allowed_by(verdict, "approval", self.approval, f"the approval level is {self.approval}")
        return verdict

    def _protected(self, request: PolicyRequest, verdict: Verdict) -> Verdict:
        if verdict.decision == "deny":
            return verdict
        verdict = self._with_concern(verdict, request.locations or locations_of(request.tool, request.params))
        if self.approval == "read-only" and verdict.decision != "deny" and not self._reads(request):
            return refused_read_only(verdict)
        return verdict

    def _with_concern(self, verdict: Verdict, locations: Sequence[Location]) -> Verdict:
        concern = strictest_concern(self.boundary, locations)
        return verdict if concern is None else with_concern(verdict, concern)

    def _reads(self, request: PolicyRequest) -> bool:
        if _looks_after_a_command(request):
            return True
        known = request.tool in READERS or request.tool in OWN_RECORDS or request.tool in WEB
        return (known or request.reads_only) and all(location.access == "read" for location in request.locations)

    def _evaluate_shell(self, request: PolicyRequest) -> Verdict:
        judged = self._shell.judge(request.params, self.grants.all(), self.approval)
        if judged.verdict.decision == "deny":
            return judged.verdict
        locations = [
            Location(target=location.target, access="run") for location in locations_of("shell", request.params)
        ]
        verdict = self._with_concern(judged.verdict, locations)
        if self.approval == "read-only" and verdict.decision != "deny" and not judged.reads:
            return refused_read_only(verdict)
        return verdict


def names_tool(rule: Rule, tool: str) -> bool:
    """A name, or a pattern such as `mcp_*`; `*` alone is the general group."""
    return rule.tool == tool or ("*" in rule.tool and rule.tool != "*" and fnmatchcase(tool, rule.tool))


def speaks_of(rule: Rule, tool: str) -> bool:
    """By its name, by a pattern, or as one for all tools."""
    return rule.tool == "*" or names_tool(rule, tool)


def allowed_by(verdict: Verdict, layer: str, text: str, reason: str) -> Verdict:
    rule = RuleReference(layer=layer, text=text)
    return msgspec.structs.replace(verdict, decision="allow", reason=reason, rule=rule)


def refused_read_only(verdict: Verdict) -> Verdict:
    rule = RuleReference(layer="approval", text="read-only")
    reason = "the approval level is read-only, and this is not known to only read"
    return msgspec.structs.replace(verdict, decision="deny", reason=reason, rule=rule, locked=False)


def with_concern(verdict: Verdict, concern: Concern) -> Verdict:
    rule = RuleReference(layer="protection", text=concern.text)
    approve = () if concern.decision == "deny" else concern.resolved
    return msgspec.structs.replace(
        verdict,
        decision=concern.decision,
        reason=concern.text,
        rule=rule,
        locked=True,
        risk=max(verdict.risk, Risk.HIGH, key=list(Risk).index),
        error_type=concern.error_type,
        approve=approve,
    )


def _looks_after_a_command(request: PolicyRequest) -> bool:
    """Reading, waiting for or stopping a background command: its start was judged."""
    return request.tool == "shell" and "command" not in request.params and "id" in request.params
