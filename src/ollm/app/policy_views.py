"""The policy as documents: its rules, its verdict on a call, and other rules' verdicts on recorded calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.app.workspace import build_rule_set
from ollm.config.load import load_policy
from ollm.domain.errors import OllmError, ToolFailure, UsageError
from ollm.domain.tools import PolicyRequest, ToolCallRecord
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import READ_ONLY_COMMAND_RULE
from ollm.runtime.calls.permission import build_policy_request
from ollm.system.terminal_text import render_command
from ollm.tools.catalogue import TOOLS, describe_catalogue, list_categories, load_tool_class
from ollm.tools.framework.base import add_parser

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.app.process import ProcessScope
    from ollm.app.workspace import WorkspaceScope
    from ollm.policy.rules import Rule
    from ollm.system.paths import Boundary

MAX_EXAMPLES = 20


def create_policy_from_file(scope: WorkspaceScope, file: Path, *, builtin: bool = False) -> PolicyEngine:
    """Build a policy from a rules file, without other rules and grants. `builtin` keeps the built-in rules."""
    loaded = load_policy(file)
    if loaded.problems:
        raise UsageError(str(loaded.problems[0]), action="See docs/policy.md for how rules are written.")
    approval = loaded.require_settings().policy.approval
    return PolicyEngine(
        build_rule_set(loaded, builtin=builtin),
        scope.boundary,
        approval=approval,
        categories=list_categories(),
    )


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
    verdict = msgspec.to_builtins(engine.evaluate(make_policy_request(engine.boundary, tool, params)))
    return {key: verdict[key] for key in ("decision", "reason", "rule", "parts", "risk", "locked", "grant")}


def make_policy_request(boundary: Boundary, tool: str, params: dict[str, Any]) -> PolicyRequest:
    """Make the request that a run of a built-in tool would make. Missing texts do not matter; other arguments that the
    tool would refuse are judged by name."""
    found = next((one for one in describe_catalogue() if one.name == tool), None)
    if found is not None:
        spec = add_parser(found, partial(load_tool_class, TOOLS[tool][0]))
        texts = {name for name, schema in found.parameters["properties"].items() if schema.get("type") == "string"}
        missing = dict.fromkeys(texts.intersection(found.parameters.get("required", ())) - set(params), "?")
        for added in ({}, missing):
            with suppress(ToolFailure):
                request = build_policy_request(spec, spec.parse({**params, **added}), boundary)
                given = {name: value for name, value in request.params.items() if name not in added}
                return msgspec.structs.replace(request, params=given)
    return PolicyRequest(tool=tool, params=params)


def run_backtest(
    process: ProcessScope, today: PolicyEngine, proposed: PolicyEngine, report: Callable[[str], None]
) -> dict[str, Any]:
    """Count decisions under the proposed and current rules, with examples of calls judged differently."""
    now_counted: Counter[str] = Counter()
    then_counted: Counter[str] = Counter()
    changes: list[dict[str, Any]] = []
    shown: set[tuple[str, ...]] = set()
    for session_id, call in _iterate_calls(process, report):
        request = make_policy_request(today.boundary, call.name, call.args)
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
