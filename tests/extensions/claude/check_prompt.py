#!/usr/bin/env python3
"""A UserPromptSubmit hook: blocks prompts with secrets, tells the model the ticket otherwise."""

import json
import sys

given = json.load(sys.stdin)
if "password:" in given.get("prompt", ""):
    print(json.dumps({"decision": "block", "reason": "Security policy violation: a secret in the prompt"}))
else:
    print(f"The current ticket is OPS-4711 ({given['hook_event_name']}).")
