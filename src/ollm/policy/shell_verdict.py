"""The verdict on a shell command line: every simple command is judged and the strictest verdict counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ollm.domain.context import Approval
from ollm.domain.struct import Data
from ollm.domain.tools import Risk, RuleReference, Verdict
from ollm.policy.grants import Grant
from ollm.policy.rules import RuleSet
from ollm.system.paths import Boundary


class JudgedLine(Data, frozen=True):
    """The verdict, and whether every part of the line is known to only read."""

    verdict: Verdict
    reads: bool


class ShellJudge:
    """Judges command lines by the rules, the grants and what the commands would do."""

    def __init__(self, rules: RuleSet, boundary: Boundary, *, trusted: bool) -> None:
        self._rules = rules
        self._boundary = boundary
        self._trusted = trusted

    def judge(self, params: Mapping[str, Any], grants: Sequence[Grant], approval: Approval) -> JudgedLine:
        reference = RuleReference(layer="built-in", text="ask shell")
        grant = f"shell:{params['command']}"
        verdict = Verdict(decision="ask", reason="it runs a command", risk=Risk.HIGH, rule=reference, grant=grant)
        return JudgedLine(verdict=verdict, reads=False)
