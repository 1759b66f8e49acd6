"""`ollm policy check`: parameters in, verdicts out, one at a time or line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from ollm.app.policy_views import check_call
from ollm.cli.options import style_text
from ollm.domain.errors import UsageError
from ollm.policy.engine import PolicyEngine
from ollm.system.terminal_text import make_printable

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def parse_parameters(named: Sequence[str], arguments: str | None) -> dict[str, Any]:
    """`--args` first, then `--param`s over it."""
    found: dict[str, Any] = {}
    if arguments is not None:
        try:
            found = json.loads(arguments)
        except ValueError as error:
            raise UsageError(f"--args is not JSON: {error}.") from error
        if not isinstance(found, dict):
            raise UsageError("--args must be a JSON object.", action="""For example --args '{"path": "a.txt"}'.""")
    for one in named:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {one} is not NAME=VALUE.")
        found[name] = value
    return found


def check_batch(engine: PolicyEngine, tool: str, common: dict[str, Any]) -> None:
    """One JSON object a line, in and out; a line that cannot be used gets an error and the others go on."""
    for line in sys.stdin.buffer:
        if line.strip():
            answer = _check_line(engine, tool, common, line)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _check_line(engine: PolicyEngine, tool: str, common: dict[str, Any], line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"id": None, "error": f"not JSON: {error}"}
    if not isinstance(request, dict):
        return {"id": None, "error": "not a JSON object"}
    params = request.get("params")
    if not isinstance(params, dict):
        return {"id": request.get("id"), "error": "params must be an object"}
    try:
        return {"id": request.get("id"), **check_call(engine, str(request.get("tool") or tool), {**common, **params})}
    except UsageError as error:
        return {"id": request.get("id"), "error": str(error)}


def warn_unknown_tool(tool: str) -> None:
    """A name that no tool here has may be one of an MCP server or an extension, or a slip."""
    from pathlib import Path

    from ollm.app import create_tool_registry
    from ollm.cli.table import warn
    from ollm.domain.suggest import format_suggestion

    known = [spec.name for spec in create_tool_registry(Path.cwd()).list()]
    if tool not in known and (hint := format_suggestion(tool, known)):
        warn(f"there is no tool {make_printable(tool)} here; {hint}")


def print_verdict(tool: str, document: dict[str, Any]) -> None:
    """The same for people."""
    decision = document["decision"]
    click.echo(
        f"{style_text(decision, fg=_COLOURS[decision], bold=True)}  {tool}: {make_printable(document['reason'])}"
    )
    rule = document["rule"]
    if rule is not None:
        place = f" ({rule['file']}:{rule['line']})" if rule["file"] and rule["line"] else ""
        click.echo(f"rule   {rule['layer']}: {make_printable(rule['text'])}{place}")
    for part in document["parts"]:
        shown = style_text(part["decision"], fg=_COLOURS[part["decision"]])
        click.echo(f"  {shown}  {make_printable(part['command'])}  ({make_printable(part['reason'])})")
    if document["locked"]:
        click.echo("ollm always asks about this; grants, approval levels and --yes do not apply.")
    elif decision == "ask" and document["grant"]:
        click.echo(f"To allow it: ollm … --allow {json.dumps(document['grant'])}")
