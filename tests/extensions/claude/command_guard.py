#!/usr/bin/env python3
"""A PreToolUse hook for Bash, in the form Claude Code describes: reasons on stderr, exit 2 to block."""

import json
import re
import sys

RULES = [
    (re.compile(r"\brm\s+-rf\b"), "rm -rf is not allowed here"),
    (re.compile(r"^grep\b"), "use rg instead of grep"),
]


def main() -> None:
    try:
        given = json.load(sys.stdin)
    except json.JSONDecodeError as error:
        print(f"Error: Invalid JSON input: {error}", file=sys.stderr)
        sys.exit(1)
    if given.get("tool_name", "") != "Bash":
        sys.exit(0)
    command = given.get("tool_input", {}).get("command", "")
    issues = [message for rule, message in RULES if rule.search(command)]
    if issues:
        for message in issues:
            print(f"• {message}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
