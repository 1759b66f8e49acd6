"""The policy as documents: its rules, its verdict on a call, and other rules' verdicts on recorded calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.errors import OllmError, UsageError
from ollm.domain.tools import PolicyRequest, ToolCallRecord
from ollm.policy.rules import READ_ONLY_COMMAND_RULE
from ollm.system.terminal_text import render_command

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope
    from ollm.policy.engine import PolicyEngine
    from ollm.policy.rules import Rule

MAX_EXAMPLES = 20


def serialize_policy(engine: PolicyEngine, *, trusted: bool) -> dict[str, Any]:
    """Serialize the policy as one document; grants carry the number that `revoke` takes."""
    named = [_serialize_rule(rule) for rule in engine.rules.rules if rule.tool != "*"]
    general = [_serialize_rule(rule) for rule in engine.rules.rules if rule.tool == "*"]
    builtin = [_serialize_rule(rule) for rule in (READ_ONLY_COMMAND_RULE, *engine.builtin_rules.values())]
    return {
        "approval": engine.approval,
        "trusted": trusted,
        "rules": [*named, *general, *(builtin if engine.rules.builtin else [])],
        "defaultAction": engine.rules.default_action,
        "grants": [
            {"number": number, "grant": str(grant), "workspace": grant.workspace}
            for number, grant in enumerate(engine.grants.list_saved(), 1)
        ],
    }


def _serialize_rule(rule: Rule) -> dict[str, Any]:
    return {
        "layer": rule.reference.layer,
        "tool": rule.tool,
        "action": rule.action,
        "text": rule.reference.text,
        "file": rule.reference.file,
        "line": rule.reference.line,
        "message": rule.message,
        "problem": rule.problem or None,
    }


def check_call(engine: PolicyEngine, tool: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict as it is printed. The keys are a stable interface."""
    if tool == "shell" and not isinstance(params.get("command"), str):
        raise UsageError("shell needs a command.", action="Add --param command='…'.")
    verdict = msgspec.to_builtins(engine.evaluate(PolicyRequest(tool=tool, params=params)))
    return {key: verdict[key] for key in ("decision", "reason", "rule", "parts", "risk", "locked", "grant")}


def run_backtest(
    process: ProcessScope, today: PolicyEngine, proposed: PolicyEngine, report: Callable[[str], None]
) -> dict[str, Any]:
    """Count decisions under the proposed and current rules, with examples of calls judged differently."""
    now_counted: Counter[str] = Counter()
    then_counted: Counter[str] = Counter()
    changes: list[dict[str, Any]] = []
    shown: set[tuple[str, ...]] = set()
    for session_id, call in _iterate_calls(process, report):
        request = PolicyRequest(tool=call.name, params=call.args)
        before, after = today.evaluate(request).decision, proposed.evaluate(request).decision
        now_counted[before] += 1
        then_counted[after] += 1
        example = (call.name, _describe_call(call), before, after)
        if before != after and len(changes) < MAX_EXAMPLES and example not in shown:
            shown.add(example)
            changes.append(
                {
                    "sessionId": session_id,
                    "callId": call.id,
                    "tool": call.name,
                    "what": example[1],
                    "now": before,
                    "then": after,
                }
            )
    return {
        "calls": sum(then_counted.values()),
        **{name: then_counted[name] for name in ("allow", "ask", "deny")},
        "today": {name: now_counted[name] for name in ("allow", "ask", "deny")},
        "changes": changes,
    }


def _iterate_calls(process: ProcessScope, report: Callable[[str], None]) -> Iterator[tuple[str, ToolCallRecord]]:
    for session_id in process.session_files.places.list_ids():
        try:
            loaded = process.session_files.read(session_id)
        except OllmError as error:
            report(str(error))
            continue
        for call in loaded.session.tool_calls:
            yield session_id, call


def _describe_call(call: ToolCallRecord) -> str:
    for name in ("command", "path", "url", "pattern", "query"):
        if isinstance(call.args.get(name), str):
            return render_command(str(call.args[name]))
    return ""
