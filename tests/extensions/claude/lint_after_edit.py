#!/usr/bin/env python3
"""A PostToolUse hook for Write and Edit that sends the model back when a file does not parse."""

import ast
import json
import sys
from pathlib import Path

given = json.load(sys.stdin)
file = Path(given["tool_input"]["file_path"])
if file.suffix == ".py":
    try:
        ast.parse(file.read_text())
    except SyntaxError as error:
        print(json.dumps({"decision": "block", "reason": f"{file.name} does not parse: {error.msg}"}))
