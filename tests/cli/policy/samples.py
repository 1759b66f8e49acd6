"""A workspace with rules, and the command in it."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command import ollm

RULES = """\
policy:
  defaultAction: ask
  rules:
    - {tool: shell, action: allow, conditions: [{param: command, operator: program, value: [ls, cat]}]}
    - tool: shell
      action: deny
      message: nothing is wiped here
      conditions: [{param: command, operator: program, value: rm, flags: [recursive, force]}]
"""


def run(place: Path, *arguments: str, stdin: str = "", code: int = 0) -> str:
    done = ollm(*arguments, home=place / "home", cwd=place / "work", stdin=stdin, HOME=str(place))
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def check(place: Path, command: str, *more: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        run(place, "policy", "check", "shell", "--param", f"command={command}", "--json", *more)
    )
    return document
