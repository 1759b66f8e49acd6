#!/usr/bin/env python3
"""A PreToolUse hook for Edit and Write that answers with a permissionDecision."""

import json
import sys

given = json.load(sys.stdin)
path = given.get("tool_input", {}).get("file_path", "")
protected = any(part in path for part in (".env", "package-lock.json", "/migrations/"))
decision = "deny" if protected else "allow"
print(
    json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision,
                "permissionDecisionReason": f"{path} is protected" if protected else "fine",
            }
        }
    )
)
