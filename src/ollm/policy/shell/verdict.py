"""Verdict on a shell command line: judges every simple command; the strictest verdict counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.context import Approval
from ollm.domain.struct import Data
from ollm.domain.tools import Decision, Risk, RuleReference, Verdict, VerdictPart
from ollm.policy.grants import Grant
from ollm.policy.rules import (
    READ_ONLY_COMMAND_RULE,
    SHELL_RULE,
    STRICTNESS,
    Rule,
    RuleSet,
    condition_matches,
    rule_matches,
)
from ollm.policy.shell.analysis import analyse_command
from ollm.policy.shell.model import CommandAnalysis, CommandPart
from ollm.policy.shell.parse import explain_bash_refusal
from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.record import find_targets
from ollm.policy.shell.rules import CommandView, RuleMatch, count_covered_words, match_condition
from ollm.system.paths import Boundary
from ollm.system.sandbox.box import WHOLE_LEVELS, Level

_NEVER_BY_SUBCOMMAND = frozenset({"exec", "x", "dlx", "config", "set", "publish", "push", "login", "token"})
_METACHARACTERS = frozenset("'\"\\$`|&;<>(){}[]*?~#!\n ")


def find_grant(part: CommandPart, command: str, grants: Sequence[Grant], *, plain: bool) -> Grant | None:
    """Return the grant that covers this part: one for exactly this line, or one whose words it begins with. Words do
    not cover redirections, assignments or options that run something."""
    for grant in grants:
        if grant.tool != "shell":
            continue
        if grant.text is None or grant.text == command.strip():
            return grant
        more = grant.exact and len(part.words) > len(grant.words)
        if plain and part.words and _begins_with(part, grant.words) and not more:
            return grant
    return None


def _begins_with(part: CommandPart, words: tuple[str, ...]) -> bool:
    texts = tuple(word.text if word.static else "\0" for word in part.words[: len(words)])
    return bool(words) and texts == words and not part.may_differ


def suggest_shell_grant(command: str, parts: Sequence[CommandPart], *, plain: bool) -> str:
    """Return the narrowest useful grant: the program's words if one plain command asks, else the exact line."""
    whole = f"shell:{command.strip()}"
    distinct = {_narrow_words(part) for part in parts}
    if not plain or len(distinct) != 1:
        return whole
    (words,) = distinct
    if not words:
        return whole
    return f"shell:{'' if _count_naming_words(list(words)) else '='}{' '.join(words)}"


def _narrow_words(part: CommandPart) -> tuple[str, ...]:
    """Return the words that name the operation, or else all words; none if one of them is not plain."""
    texts = tuple(word.text for word in part.words)
    count = _count_naming_words(texts) or len(texts)
    plain = all(word.static and not _METACHARACTERS & set(word.text) for word in part.words[:count])
    return texts[:count] if plain else ()


def _count_naming_words(texts: Sequence[str]) -> int:
    granting = get_program(texts[0] if texts else "").grants
    if granting is None:
        return 0
    subcommand = next(iter(texts[1:2]), "")
    if subcommand in granting.third:
        return 3 if len(texts) > 2 and not texts[2].startswith("-") else 0
    if granting.subcommands and subcommand not in granting.subcommands:
        return 0
    named = len(texts) >= granting.depth and not (granting.depth > 1 and subcommand.startswith("-"))
    return granting.depth if named else 0


def suggest_prefix(parts: Sequence[CommandPart], grant: str) -> str | None:
    """Return a wider grant to offer, the program and its subcommand, or None if the program can run arbitrary
    commands."""
    heads = {tuple(word.text for word in part.words[:2]) for part in parts if part.words}
    if len(heads) != 1 or not all(word.static for part in parts for word in part.words[:2]):
        return None
    program, *rest = heads.pop()
    record = get_program(program)
    depth = 0 if record.grants is None else record.grants.depth
    never = (record.runs_others and not depth) or (record.grants is not None and record.grants.never)
    if never or not _NEVER_BY_SUBCOMMAND.isdisjoint(rest) or not program.replace("-", "").replace("_", "").isalnum():
        return None
    subcommand = rest[0] if rest and rest[0].replace("-", "x").isalnum() and not rest[0].startswith("-") else None
    if subcommand is None and depth > 1:
        return None
    prefix = f"shell:{program} {subcommand}" if record.grants is not None and subcommand else f"shell:{program}"
    return prefix if prefix != grant else None


_PROTECTION = RuleReference(layer="protection", text="protected files and paths outside")
_UNREADABLE = RuleReference(layer="protection", text="whatever is not known to be safe needs confirmation")


class JudgedLine(Data, frozen=True):
    """The verdict, and whether every part of the line is known to only read. `exact`: all programs are so simple that
    the analysis cannot be wrong."""

    verdict: Verdict
    reads: bool
    exact: bool = False
    outside: str = ""  # The reason why it works only outside a sandbox.


class JudgedPart(Data, frozen=True):
    """One part and its decision. `plain` is False if something beyond the rules makes it ask."""

    part: CommandPart
    decision: Decision
    reason: str
    rule: RuleReference | None
    risk: Risk | None = None
    locked: bool = False
    plain: bool = True


class ShellJudge:
    """Judges command lines by the rules, the grants and the effects of the commands."""

    def __init__(self, rules: RuleSet, boundary: Boundary, *, find_level: Callable[[], Level] = lambda: "none") -> None:
        """`find_level` returns the sandbox level for commands that run without a confirmation."""
        self._find_level = find_level
        self._rules = rules
        self._boundary = boundary
        self._writing = [rule for rule in rules.rules if rule.tool in ("write_file", "*") and rule.action == "deny"]

    def judge(self, params: Mapping[str, Any], grants: Sequence[Grant], approval: Approval) -> JudgedLine:
        command = str(params["command"])
        analysis = analyse_command(command, self._find_start(params), self._boundary, self._find_level)
        parts = [self._weigh_unknown(part) for part in analysis.parts]
        judged = [one for part in parts if (one := self._judge_part(part, params)) is not None]
        if not analysis.remarks and all(one.decision == "allow" for one in judged):
            refusal = explain_bash_refusal(command)
            analysis = msgspec.structs.replace(analysis, remarks=(refusal,)) if refusal else analysis
        line = [_judge_remarks(command, analysis)] if analysis.remarks else []
        answered = [_apply_grants(one, command, grants, approval) for one in (*judged, *line)]
        reads = bool(judged) and not analysis.remarks and all(self._only_reads(one.part) for one in judged)
        empty: Decision = "ask" if self._rules.builtin else self._rules.default_action
        exact = reads and all(_is_exact(one.part) for one in judged)
        verdict = _combine_verdict(command, answered, empty, reads=reads)
        outside = next((one.part.outside for one in judged if one.part.outside), "")
        return JudgedLine(verdict=verdict, reads=reads, exact=exact, outside=outside)

    def _weigh_unknown(self, part: CommandPart) -> CommandPart:
        if not part.unknown or self._find_level() in WHOLE_LEVELS:
            return part
        return msgspec.structs.replace(part, remarks=(*part.remarks, *part.unknown))

    def _find_start(self, params: Mapping[str, Any]) -> Path:
        cwd = params.get("cwd")
        return self._boundary.workspace / cwd if isinstance(cwd, str) and cwd else self._boundary.workspace

    def _judge_part(self, part: CommandPart, params: Mapping[str, Any]) -> JudgedPart | None:
        if part.write_target is not None and (denied := self._find_denied_write(part.write_target)):
            return JudgedPart(part=part, decision="deny", reason=denied.reason, rule=denied.reference, plain=False)
        if not part.words:
            return None if part.guess else _apply_floor(part, "allow", "it changes nothing", None)
        view = CommandView(part)
        found = self._find_rule(view, params)
        if part.guess or part.transparent:
            return self._judge_restricted(part, found)
        if found is None:
            action = self._rules.default_action
            reference = RuleReference(layer="default", text=f"defaultAction: {action}")
            return _apply_floor(part, action, f"no rule matches; the default is {action}", reference)
        rule, certain = found
        if not certain:
            reason = f"{rule.reason}, which may apply at run time"
            return _apply_floor(part, "ask", reason, rule.reference)
        covered = max((count_covered_words(one, view) for one in rule.conditions), default=0)
        return _apply_floor(part, rule.action, rule.reason, rule.reference, risk=rule.risk, covered=covered)

    def _judge_restricted(self, part: CommandPart, found: tuple[Rule, bool] | None) -> JudgedPart | None:
        """Judge a guess, which can only forbid, or a harmless wrapper, which a rule may forbid or ask about by name."""
        if found is None:
            return None
        rule, certain = found
        if not certain or rule.action == "allow" or rule is SHELL_RULE or (part.guess and rule.action != "deny"):
            return None
        return JudgedPart(
            part=part,
            decision=rule.action,
            reason=rule.reason,
            rule=rule.reference,
            risk=rule.risk,
            plain=False,
        )

    def _find_rule(self, view: CommandView, params: Mapping[str, Any]) -> tuple[Rule, bool] | None:
        """Return the rule that decides, and whether it certainly matches: a possible match weighs half a step less."""

        def weigh(rule: Rule) -> float | None:
            held = self._match_rule(rule, view, params)
            return None if held == "no" else STRICTNESS[rule.action] - 0.5 * (held == "maybe")

        builtin = READ_ONLY_COMMAND_RULE if self._only_reads(view.part) else SHELL_RULE
        found = self._rules.find_rule("shell", weigh, builtin)
        return None if found is None else (found[0], found[1] == STRICTNESS[found[0].action])

    def _match_rule(self, rule: Rule, view: CommandView, params: Mapping[str, Any]) -> RuleMatch:
        allows = rule.action == "allow"
        answers: list[RuleMatch] = []
        for condition in rule.conditions:
            if condition.param == "command":
                answers.append(match_condition(condition, view, self._boundary, allows=allows))
            else:
                answers.append("yes" if condition_matches(condition, params, self._boundary, allows=allows) else "no")
        if "no" in answers:
            return "no"
        return "maybe" if "maybe" in answers else "yes"

    def _only_reads(self, part: CommandPart) -> bool:
        if part.guess or part.transparent:
            return True
        clean = not (part.remarks or part.runs)  # Possible effects in `unknown` do not count here.
        return clean and (part.reads or not part.words)

    def _find_denied_write(self, target: str) -> Rule | None:
        named = (rule for rule in self._writing if rule.conditions)
        return next((rule for rule in named if rule_matches(rule, {"path": target}, self._boundary)), None)


def _is_exact(part: CommandPart) -> bool:
    if not part.words:
        return True
    reading = get_program(part.words[0].text).reads
    return reading is not None and reading.exact and all(word.static for word in part.words)


def _apply_floor(
    part: CommandPart,
    action: Decision,
    reason: str,
    rule: RuleReference | None,
    *,
    risk: Risk | None = None,
    covered: int = 0,
) -> JudgedPart:
    running = [text for index, text in part.runs if index >= covered]
    floor = [*part.remarks, *running]
    locked = bool(part.locks) and action != "deny"
    if action != "deny" and (floor or locked):
        text = "; ".join(dict.fromkeys((*part.locks, *floor, *part.notes)))
        reference = _PROTECTION if locked else rule if action == "ask" else _UNREADABLE
        risk = Risk.HIGH if locked or part.write_target is None else Risk.MEDIUM
        return JudgedPart(part=part, decision="ask", reason=text, rule=reference, risk=risk, locked=locked, plain=False)
    told = "; ".join((reason, *part.notes)) if action == "ask" else reason
    program = get_program(part.words[0].text) if part.words and action == "ask" else None
    if program and program.writes and program.writes.removing and find_targets(program, part.words).removed:
        risk, told = Risk.HIGH, "it applies to everything in the folders it names"
    return JudgedPart(part=part, decision=action, reason=told, rule=rule, risk=risk)


def _judge_remarks(command: str, analysis: CommandAnalysis) -> JudgedPart:
    reason = "; ".join(analysis.remarks)
    part = CommandPart(words=(), text=command, directories=None, remarks=analysis.remarks)
    judged = JudgedPart(part=part, decision="ask", reason=reason, rule=_UNREADABLE, risk=Risk.HIGH, plain=False)
    return msgspec.structs.replace(judged, locked=analysis.unread)


def _apply_grants(judged: JudgedPart, command: str, grants: Sequence[Grant], approval: Approval) -> JudgedPart:
    """Let a grant or the approval level answer an ask that is not locked."""
    if judged.decision != "ask" or judged.locked:
        return judged
    grant = find_grant(judged.part, command, grants, plain=judged.plain)
    if grant is not None and judged.part.ungranted:
        reason = f"{'; '.join(judged.part.ungranted)}, which {grant} does not cover"
        judged = msgspec.structs.replace(judged, reason=reason)
    elif grant is not None:
        rule = RuleReference(layer="grant", text=str(grant))
        return msgspec.structs.replace(judged, decision="allow", reason=f"granted: {grant}", rule=rule)
    if approval == "yolo":
        rule = RuleReference(layer="approval", text="yolo")
        return msgspec.structs.replace(judged, decision="allow", reason="the approval level is yolo", rule=rule)
    return judged


def _combine_verdict(command: str, answered: Sequence[JudgedPart], empty: Decision, *, reads: bool) -> Verdict:
    risks = list(Risk)
    worst = max(
        answered,
        key=lambda one: (STRICTNESS[one.decision], one.locked, risks.index(one.risk or Risk.MEDIUM)),
        default=None,
    )
    if worst is None:
        return Verdict(decision=empty, reason="it runs no program", risk=Risk.HIGH, rule=_UNREADABLE)
    shown = [one for one in answered if not (one.part.transparent and one.decision == "allow")]
    grant, prefix = _suggest_grants(command, answered)
    risk = Risk.LOW if reads and worst.decision == "allow" else worst.risk or Risk.MEDIUM
    return Verdict(
        decision=worst.decision,
        reason=worst.reason,
        risk=risk,
        rule=worst.rule,
        parts=tuple(VerdictPart(command=one.part.text, decision=one.decision, reason=one.reason) for one in shown),
        locked=worst.locked and worst.decision == "ask",
        approve=tuple(dict.fromkeys(path for one in answered for path in one.part.opens)),
        reads=reads,
        grant=grant,
        prefix=prefix,
    )


def _suggest_grants(command: str, answered: Sequence[JudgedPart]) -> tuple[str | None, str | None]:
    """Suggest a grant that would answer the line, and a wider one, unless none can or none is needed."""
    asking = [one for one in answered if one.decision == "ask"]
    refused = any(one.locked or one.decision == "deny" for one in answered)
    if not asking or refused or any(one.part.ungranted for one in asking):
        return None, None
    parts, plain = [one.part for one in asking], all(one.plain for one in asking)
    grant = suggest_shell_grant(command, parts, plain=plain)
    return grant, suggest_prefix(parts, grant) if plain else None
