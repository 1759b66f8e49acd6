"""`ollm policy backtest`: what other rules would have said to everything that was ever asked for."""

from __future__ import annotations

from typing import Any

from ollm.cli.table import print_table


def print_result(result: dict[str, Any]) -> None:
    rows = [(name, result["today"][name], result[name]) for name in ("allow", "ask", "deny")]
    print(f"{result['calls']} recorded calls.\n")
    print_table(("", "today", "with these rules"), rows)
    if result["changes"]:
        print()
        changed = [(one["now"], one["then"], one["tool"], one["what"]) for one in result["changes"]]
        print_table(("today", "then", "tool", "what"), changed)
