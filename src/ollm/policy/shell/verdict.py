"""The verdict on a shell command line: every simple command is judged and the strictest verdict counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.context import Approval
from ollm.domain.struct import Data
from ollm.domain.tools import Decision, Risk, RuleReference, Verdict, VerdictPart
from ollm.policy.builtin import BUILTIN_RULES, READING_COMMAND
from ollm.policy.grants import Grant
from ollm.policy.matching import condition_holds, holds
from ollm.policy.rules import STRICTNESS, Rule, RuleSet
from ollm.policy.shell import Analysis, Part, analyse
from ollm.policy.shell.grants import granted, suggest_shell
from ollm.policy.shell.rules import Answer, CommandView, answer, covered_words
from ollm.system.paths import Boundary

_ASK = next(rule for rule in BUILTIN_RULES if rule.tool == "shell")
_PROTECTION = RuleReference(layer="protection", text="protected files and paths outside")
_UNDERSTOOD = RuleReference(layer="protection", text="what is not plainly readable is asked about")


class JudgedLine(Data, frozen=True):
    """The verdict, and whether every part of the line is known to only read."""

    verdict: Verdict
    reads: bool


class Judged(Data, frozen=True):
    """One part and what is thought of it. `plain` is false when something beyond the rules makes it ask."""

    part: Part
    decision: Decision
    reason: str
    rule: RuleReference | None
    risk: Risk | None = None
    locked: bool = False
    plain: bool = True


class ShellJudge:
    """Judges command lines by the rules, the grants and what the commands would do."""

    def __init__(self, rules: RuleSet, boundary: Boundary, *, trusted: bool) -> None:
        self._rules = rules
        self._boundary = boundary
        self._trusted = trusted
        own = [rule for rule in rules.rules if not rule.tightens]
        self._named = [rule for rule in own if rule.tool == "shell" or _names_shell(rule)]
        self._general = [rule for rule in own if rule.tool == "*"]
        self._tightening = [rule for rule in rules.rules if rule.tightens and _speaks_of_shell(rule)]
        self._writing = [rule for rule in rules.rules if rule.tool in ("write_file", "*") and rule.action == "deny"]

    def judge(self, params: Mapping[str, Any], grants: Sequence[Grant], approval: Approval) -> JudgedLine:
        command = str(params["command"])
        analysis = analyse(command, self._start(params), self._boundary)
        judged = [one for part in analysis.parts if (one := self._part(part, params)) is not None]
        line = [_remarked(command, analysis)] if analysis.remarks else []
        answered = [_answered(one, command, grants, approval) for one in (*judged, *line)]
        reads = not analysis.remarks and all(self._reads(one.part) for one in judged)
        return JudgedLine(verdict=_verdict(command, answered, reads=reads), reads=reads)

    def _start(self, params: Mapping[str, Any]) -> Path:
        cwd = params.get("cwd")
        return self._boundary.workspace / cwd if isinstance(cwd, str) and cwd else self._boundary.workspace

    def _part(self, part: Part, params: Mapping[str, Any]) -> Judged | None:
        if part.write_target is not None:
            denied = self._denied_write(part.write_target)
            if denied is not None:
                return denied_by(part, denied)
        if not part.words:
            return None if part.guess else _with_floor(part, "allow", "it changes nothing", None)
        view = CommandView(part)
        found = self._rule(view, params)
        if part.guess or part.transparent:
            return self._only_restricted(part, found)
        if found is None:
            action = self._rules.default_action
            reference = RuleReference(layer="default", text=f"defaultAction: {action}")
            return _with_floor(part, action, f"no rule speaks of it, and the default is {action}", reference)
        rule, certain = found
        if not certain:
            reason = f"{_reason(rule)}, which may be what it turns out to be when it runs"
            return _with_floor(part, "ask", reason, rule.reference)
        covered = max((covered_words(one, view) for one in rule.conditions), default=0)
        return _with_floor(part, rule.action, _reason(rule), rule.reference, risk=rule.risk, covered=covered)

    def _only_restricted(self, part: Part, found: tuple[Rule, bool] | None) -> Judged | None:
        """A guess can only forbid; a harmless wrapper can be forbidden or asked about by name."""
        if found is None:
            return None
        rule, certain = found
        if not certain or rule.action == "allow" or rule is _ASK or (part.guess and rule.action != "deny"):
            return None
        return Judged(
            part=part, decision=rule.action, reason=_reason(rule), rule=rule.reference, risk=rule.risk, plain=False
        )

    def _rule(self, view: CommandView, params: Mapping[str, Any]) -> tuple[Rule, bool] | None:
        """The rule that decides and whether it surely holds; a workspace's rule only when it is the stricter one."""
        found = self._strictest(self._named, view, params) or self._strictest(self._general, view, params)
        if found is None and self._rules.builtin:
            found = (READING_COMMAND if self._reads(view.part) else _ASK), "yes"
        theirs = self._strictest(self._tightening, view, params)
        weight = STRICTNESS[self._rules.default_action] if found is None else _weight(*found)
        if theirs is not None and _weight(*theirs) > weight:
            found = theirs
        return None if found is None else (found[0], found[1] == "yes")

    def _strictest(
        self, group: Sequence[Rule], view: CommandView, params: Mapping[str, Any]
    ) -> tuple[Rule, Answer] | None:
        matches = [(rule, held) for rule in group if (held := self._holds(rule, view, params)) != "no"]
        return max(matches, key=lambda match: _weight(*match), default=None)

    def _holds(self, rule: Rule, view: CommandView, params: Mapping[str, Any]) -> Answer:
        allows = rule.action == "allow"
        answers: list[Answer] = []
        for condition in rule.conditions:
            if condition.param == "command":
                answers.append(answer(condition, view, self._boundary, allows=allows))
            else:
                answers.append("yes" if condition_holds(condition, params, self._boundary, allows=allows) else "no")
        if "no" in answers:
            return "no"
        return "maybe" if "maybe" in answers else "yes"

    def _reads(self, part: Part) -> bool:
        """Known to only read: nothing to remark upon, and git only where the workspace is trusted."""
        if part.guess or part.transparent:
            return True
        clean = not (part.remarks or part.runs)
        return clean and (not part.words or (part.reads and (self._trusted or not part.git)))

    def _denied_write(self, target: str) -> Rule | None:
        params = {"path": target}
        named = [rule for rule in self._writing if rule.conditions and holds(rule, params, self._boundary)]
        return named[0] if named else None


def _names_shell(rule: Rule) -> bool:
    from fnmatch import fnmatchcase

    return "*" in rule.tool and rule.tool != "*" and fnmatchcase("shell", rule.tool)


def _speaks_of_shell(rule: Rule) -> bool:
    return rule.tool in ("shell", "*") or _names_shell(rule)


def _weight(rule: Rule, held: Answer) -> float:
    """Deny beats ask beats allow; a deny that only may hold weighs as an ask."""
    return STRICTNESS[rule.action] if held == "yes" else 1.5 if rule.action == "deny" else 1.0


def _reason(rule: Rule) -> str:
    return rule.message or f"the rule “{rule.reference.text}” says so"


def denied_by(part: Part, rule: Rule) -> Judged:
    return Judged(part=part, decision="deny", reason=_reason(rule), rule=rule.reference, plain=False)


def _with_floor(
    part: Part, action: Decision, reason: str, rule: RuleReference | None, *, risk: Risk | None = None, covered: int = 0
) -> Judged:
    """What the command would do may raise the verdict to ask, and never lowers it."""
    running = [text for index, text in part.runs if index >= covered]
    floor = [*part.remarks, *running]
    locked = bool(part.locks) and action != "deny"
    if action != "deny" and (floor or locked):
        text = "; ".join(dict.fromkeys((*part.locks, *floor)))
        reference = _PROTECTION if locked else rule if action == "ask" else _UNDERSTOOD
        return Judged(
            part=part, decision="ask", reason=text, rule=reference, risk=Risk.HIGH, locked=locked, plain=False
        )
    return Judged(part=part, decision=action, reason=reason, rule=rule, risk=risk)


def _remarked(command: str, analysis: Analysis) -> Judged:
    reason = "; ".join(analysis.remarks)
    part = Part(words=(), text=command, directories=None, remarks=analysis.remarks)
    return Judged(part=part, decision="ask", reason=reason, rule=_UNDERSTOOD, risk=Risk.HIGH, plain=False)


def _answered(judged: Judged, command: str, grants: Sequence[Grant], approval: Approval) -> Judged:
    """A grant or the approval level may answer an ask that is not locked."""
    if judged.decision != "ask" or judged.locked:
        return judged
    grant = granted(judged.part, command, grants, plain=judged.plain)
    if grant is not None:
        rule = RuleReference(layer="grant", text=str(grant))
        return msgspec.structs.replace(judged, decision="allow", reason=f"it was granted: {grant}", rule=rule)
    if approval == "yolo":
        rule = RuleReference(layer="approval", text="yolo")
        return msgspec.structs.replace(judged, decision="allow", reason="the approval level is yolo", rule=rule)
    return judged


def _verdict(command: str, answered: Sequence[Judged], *, reads: bool) -> Verdict:
    worst = max(answered, key=lambda one: (STRICTNESS[one.decision], one.locked), default=None)
    if worst is None:
        return Verdict(decision="allow", reason="it runs no program", risk=Risk.LOW, rule=READING_COMMAND.reference)
    shown = [one for one in answered if not (one.part.transparent and one.decision == "allow")]
    risk = Risk.LOW if reads and worst.decision == "allow" else worst.risk or Risk.HIGH
    return Verdict(
        decision=worst.decision,
        reason=worst.reason,
        risk=risk,
        rule=worst.rule,
        parts=tuple(VerdictPart(command=one.part.text, decision=one.decision, reason=one.reason) for one in shown),
        locked=worst.locked and worst.decision == "ask",
        grant=_grant(command, answered),
    )


def _grant(command: str, answered: Sequence[Judged]) -> str | None:
    """The grant that would answer the line, unless nothing can or nothing needs to."""
    asking = [one for one in answered if one.decision == "ask"]
    if not asking or any(one.locked or one.decision == "deny" for one in answered):
        return None
    return suggest_shell(command, [one.part for one in asking], plain=all(one.plain for one in asking))
