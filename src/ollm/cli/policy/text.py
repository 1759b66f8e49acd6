"""`ollm policy show`: all rules in the order they are asked."""

from __future__ import annotations

from typing import Any

from ollm.cli.table import print_table


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
