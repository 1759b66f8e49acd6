"""`ollm policy backtest`: what other rules would have said to everything that was ever asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ollm.cli.table import print_table, warn
from ollm.domain.errors import OllmError
from ollm.domain.tools import PolicyRequest, ToolCallRecord
from ollm.system.terminal_text import render_command

if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.policy.engine import PolicyEngine

_MAX_EXAMPLES = 20


def run_backtest(process: ProcessScope, today: PolicyEngine, proposed: PolicyEngine) -> dict[str, Any]:
    """Counts under the proposed rules and today's, and examples of calls that would be judged differently."""
    now_counted: Counter[str] = Counter()
    then_counted: Counter[str] = Counter()
    changes: list[dict[str, Any]] = []
    shown: set[tuple[str, ...]] = set()
    for session_id, call in _iterate_calls(process):
        request = PolicyRequest(tool=call.name, params=call.args)
        before, after = today.evaluate(request).decision, proposed.evaluate(request).decision
        now_counted[before] += 1
        then_counted[after] += 1
        example = (call.name, _describe_call(call), before, after)
        if before != after and len(changes) < _MAX_EXAMPLES and example not in shown:
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


def _iterate_calls(process: ProcessScope) -> Iterator[tuple[str, ToolCallRecord]]:
    for session_id in process.session_files.places.list_ids():
        try:
            loaded = process.session_files.read(session_id)
        except OllmError as error:
            warn(str(error))
            continue
        for call in loaded.session.tool_calls:
            yield session_id, call


def _describe_call(call: ToolCallRecord) -> str:
    for name in ("command", "path", "url", "pattern", "query"):
        if isinstance(call.args.get(name), str):
            return render_command(str(call.args[name]))
    return ""


def print_result(result: dict[str, Any]) -> None:
    rows = [(name, result["today"][name], result[name]) for name in ("allow", "ask", "deny")]
    print(f"{result['calls']} recorded calls.\n")
    print_table(("", "today", "with these rules"), rows)
    if result["changes"]:
        print()
        changed = [(one["now"], one["then"], one["tool"], one["what"]) for one in result["changes"]]
        print_table(("today", "then", "tool", "what"), changed)
