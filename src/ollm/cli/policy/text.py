"""`ollm policy show`: all rules in the order they are asked."""

from __future__ import annotations

from typing import Any

from ollm.cli.table import print_table
from ollm.policy.builtin import READ_ONLY_COMMAND_RULE
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import Rule


def serialize_policy(engine: PolicyEngine) -> dict[str, Any]:
    """The policy as one document; grants carry the number that `revoke` takes."""
    named = [_serialize_rule(rule) for rule in engine.rules.rules if rule.tool != "*"]
    general = [_serialize_rule(rule) for rule in engine.rules.rules if rule.tool == "*"]
    builtin = [_serialize_rule(rule) for rule in (READ_ONLY_COMMAND_RULE, *engine.builtin_rules.values())]
    return {
        "approval": engine.approval,
        "trusted": engine.trusted,
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


def print_policy(document: dict[str, Any]) -> None:
    """The same for people."""
    trust = "trusted" if document["trusted"] else "not trusted: git commands ask"
    print(f"Approval level: {document['approval']}. This workspace is {trust}.\n")
    rows = []
    for rule in document["rules"]:
        place = f"{rule['file']}:{rule['line']}" if rule["file"] else rule["layer"]
        rows.append((rule["action"], rule["text"].partition(" ")[2], place, rule["problem"] or rule["message"]))
    rows.append((document["defaultAction"], "everything else", "default", ""))
    print_table(("action", "what", "where", "why"), rows)
    print()
    if document["grants"]:
        granted = [(one["number"], one["grant"], one["workspace"] or "everywhere") for one in document["grants"]]
        print_table(("number", "granted", "where"), granted)
    else:
        print("No permanent grants.")
