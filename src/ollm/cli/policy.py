"""`ollm policy`: show the rules, try them on a call or on every recorded one, and revoke grants (T7)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ollm.app.policy_views import check_call, create_policy_from_file, run_backtest, serialize_policy
from ollm.app.process import ProcessScope
from ollm.app.toolbox import create_tool_registry
from ollm.app.workspace import WorkspaceScope
from ollm.cli.completion import complete_tool
from ollm.cli.options import (
    confirm_or_fail,
    format_table,
    parse_json,
    parse_pairs,
    print_json,
    print_result,
    shared_options,
    warn,
)
from ollm.config.environment import copy_environment, wants_colour
from ollm.domain.errors import UsageError
from ollm.domain.text import format_suggestion
from ollm.policy.engine import PolicyEngine
from ollm.policy.grants import GrantBook
from ollm.system.terminal_text import make_printable


@click.group()
def policy() -> None:
    """Show, check and revoke permissions."""


@policy.command()
@shared_options("process", "json")
def show(process: ProcessScope, as_json: bool) -> None:
    """List the rules and the grants.

    Rules are listed in order of precedence; revoke a grant by its number.
    """
    document = serialize_policy(_make_engine(process, None), trusted=process.trusted)
    print_result(document, format_policy(document), as_json=as_json)


@policy.command()
@click.argument("number", type=int, required=False)
@click.option("--all", "everything", is_flag=True, help="Revoke all of them.")
@shared_options("yes", "json")
def revoke(number: int | None, everything: bool, yes: bool, as_json: bool) -> None:
    """Revoke grant NUMBER from `ollm policy show`, or all."""
    if everything == (number is not None):
        raise UsageError("Give a grant number, or --all.", action="List them with `ollm policy show`.")
    book = GrantBook(ProcessScope().home.grants)
    if number is not None:
        revoked = [str(book.revoke(number))]
    else:
        revoked = [str(grant) for grant in book.list_saved()]
        confirm_or_fail(f"Revoke {'the grant' if len(revoked) == 1 else f'all {len(revoked):,} grants'}?", yes)
        book.revoke_all()
    text = "\n".join(f"Revoked: {text}" for text in revoked) or "Nothing to revoke."
    print_result({"revoked": revoked}, text, as_json=as_json)


@policy.command()
@click.argument("tool", shell_complete=complete_tool)
@click.option(
    "--param", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter of the call (repeatable)."
)
@click.option("--args", "arguments", metavar="JSON", help="All parameters as one JSON object.")
@click.option("--rules", metavar="FILE", help="Use only the rules in this file.")
@click.option("--batch", is_flag=True, help="Read one {id, params} per line from stdin; print one verdict per line.")
@shared_options("process", "json")
def check(
    tool: str,
    parameters: tuple[str, ...],
    arguments: str | None,
    rules: str | None,
    batch: bool,
    process: ProcessScope,
    as_json: bool,
) -> None:
    """Show whether a call of TOOL would be allowed, and why.

    The result is allow, ask or deny; nothing runs.
    """
    params = parse_parameters(parameters, arguments)
    engine = _make_engine(process, rules)
    if batch:
        for line in sys.stdin.buffer:
            if line.strip():
                print(json.dumps(_check_line(engine, tool, params, line)), flush=True)
        return
    verdict = check_call(engine, tool, params)
    if as_json:
        print_json(verdict)
    else:
        print_verdict(tool, verdict)
        known = [
            spec.name for spec in create_tool_registry(Path.cwd()).list()
        ]  # Other tools may belong to servers or extensions.
        if tool not in known and (hint := format_suggestion(tool, known)):
            warn(f"there is no tool {make_printable(tool)} here; {hint}")


@policy.command()
@click.argument("file")
@shared_options("process", "json")
def backtest(file: str, process: ProcessScope, as_json: bool) -> None:
    """Test the rules in FILE on all recorded calls.

    Counts how many would be allowed, asked about and denied.
    """
    result = run_backtest(process, _make_engine(process, None), _make_engine(process, file, builtin=True), warn)
    print_result(result, format_backtest(result), as_json=as_json)


def _make_engine(process: ProcessScope, rules: str | None, *, builtin: bool = False) -> PolicyEngine:
    assert process.workspace is not None
    scope = WorkspaceScope(process, process.workspace)
    engine = scope.create_policy() if rules is None else create_policy_from_file(scope, Path(rules), builtin=builtin)
    warn(*engine.rules.problems)
    return engine


def _style_decision(decision: str, *, bold: bool = False) -> str:
    """Colour a decision unless NO_COLOR is set. Click drops colours if the output is not a terminal."""
    colours = {"allow": "green", "ask": "yellow", "deny": "red"}
    return click.style(decision, fg=colours[decision], bold=bold) if wants_colour(copy_environment()) else decision


def parse_parameters(named: Sequence[str], arguments: str | None) -> dict[str, Any]:
    found = {} if arguments is None else parse_json(arguments, "--args")
    if not isinstance(found, dict):
        raise UsageError("--args must be a JSON object.", action="""For example --args '{"path": "a.txt"}'.""")
    return {**found, **parse_pairs(named, "=", "--param")}


def _check_line(engine: PolicyEngine, tool: str, common: dict[str, Any], line: bytes) -> dict[str, Any]:
    """Check the call in a JSON object. An invalid line gets an error and does not stop the others."""
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


def print_verdict(tool: str, document: dict[str, Any]) -> None:
    decision = document["decision"]
    click.echo(f"{_style_decision(decision, bold=True)}  {tool}: {make_printable(document['reason'])}")
    rule = document["rule"]
    if rule is not None:
        place = f" ({rule['file']}:{rule['line']})" if rule["file"] and rule["line"] else ""
        click.echo(f"rule   {rule['layer']}: {make_printable(rule['text'])}{place}")
    for part in document["parts"]:
        shown = _style_decision(part["decision"])
        click.echo(f"  {shown}  {make_printable(part['command'])}  ({make_printable(part['reason'])})")
    if document["locked"]:
        click.echo("ollm always asks about this; grants, approval levels and --yes do not apply.")
    elif decision == "ask" and document["grant"]:
        click.echo(f"To allow it: ollm … --allow {json.dumps(document['grant'])}")


def format_backtest(result: dict[str, Any]) -> str:
    rows = [(name, result["today"][name], result[name]) for name in ("allow", "ask", "deny")]
    changed = [(one["now"], one["then"], one["tool"], one["what"]) for one in result["changes"]]
    parts = [f"{result['calls']} recorded calls.", format_table(("", "today", "with these rules"), rows)]
    return "\n\n".join([*parts, format_table(("today", "then", "tool", "what"), changed)] if changed else parts)


def format_policy(document: dict[str, Any]) -> str:
    trust = "trusted" if document["trusted"] else "not trusted"
    rows = []
    for rule in document["rules"]:
        place = f"{rule['file']}:{rule['line']}" if rule["file"] else rule["layer"]
        rows.append((rule["action"], rule["text"].partition(" ")[2], place, rule["problem"] or rule["message"]))
    rows.append((document["defaultAction"], "everything else", "default", ""))
    granted = [(one["number"], one["grant"], one["workspace"] or "everywhere") for one in document["grants"]]
    return "\n\n".join(
        (
            f"Approval level: {document['approval']}. This workspace is {trust}.",
            format_table(("action", "what", "where", "why"), rows),
            format_table(("number", "granted", "where"), granted, "No permanent grants."),
        )
    )
