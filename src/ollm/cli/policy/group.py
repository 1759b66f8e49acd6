"""`ollm policy`: read the rules, try them on a call or on every recorded one, and take grants back (T7)."""

from __future__ import annotations

import click

from ollm.cli.completers import complete_tool
from ollm.cli.options import confirm_or_fail, json_option, print_json, resolve_workspace, workspace_option, yes_option
from ollm.domain.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.policy.engine import PolicyEngine


@click.group()
def policy() -> None:
    """Show, check and revoke permissions."""


@policy.command()
@workspace_option
@json_option
def show(workspace: str | None, as_json: bool) -> None:
    """List the rules and the grants.

    Rules are listed in order of precedence; revoke a grant by its number.
    """
    from ollm.app.policy_views import serialize_policy
    from ollm.cli.policy.text import print_policy

    document = serialize_policy(_make_engine(_make_process(workspace), None))
    if as_json:
        print_json(document)
    else:
        print_policy(document)


@policy.command()
@click.argument("number", type=int, required=False)
@click.option("--all", "everything", is_flag=True, help="Revoke all of them.")
@yes_option
@json_option
def revoke(number: int | None, everything: bool, yes: bool, as_json: bool) -> None:
    """Revoke grant NUMBER from `ollm policy show`, or all."""
    if everything == (number is not None):
        raise UsageError("Give a grant number, or --all.", action="List them with `ollm policy show`.")
    from ollm.app import ProcessScope
    from ollm.policy.grants import GrantBook

    book = GrantBook(ProcessScope().home.grants)
    if number is not None:
        taken = [str(book.revoke(number))]
    else:
        taken = [str(grant) for grant in book.list_saved()]
        confirm_or_fail(f"Revoke {'the grant' if len(taken) == 1 else f'all {len(taken):,} grants'}?", yes)
        book.revoke_all()
    if as_json:
        print_json({"revoked": taken})
    else:
        print("\n".join(f"Revoked: {text}" for text in taken) or "Nothing to revoke.")


@policy.command()
@click.argument("tool", shell_complete=complete_tool)
@click.option(
    "--param", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter of the call (repeatable)."
)
@click.option("--args", "arguments", metavar="JSON", help="All parameters as one JSON object.")
@click.option("--rules", metavar="FILE", help="Use only the rules in this file.")
@click.option("--batch", is_flag=True, help="Read one {id, params} per line from stdin; print one verdict per line.")
@workspace_option
@json_option
def check(
    tool: str,
    parameters: tuple[str, ...],
    arguments: str | None,
    rules: str | None,
    batch: bool,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Show whether a call of TOOL would be allowed, and why.

    The result is allow, ask or deny; nothing runs.
    """
    from ollm.app.policy_views import check_call
    from ollm.cli.policy import check as policy_check

    params = policy_check.parse_parameters(parameters, arguments)
    engine = _make_engine(_make_process(workspace), rules)
    if batch:
        policy_check.check_batch(engine, tool, params)
        return
    verdict = check_call(engine, tool, params)
    if as_json:
        print_json(verdict)
    else:
        policy_check.print_verdict(tool, verdict)
        policy_check.warn_unknown_tool(tool)


@policy.command()
@click.argument("file")
@workspace_option
@json_option
def backtest(file: str, workspace: str | None, as_json: bool) -> None:
    """Test the rules in FILE on all recorded calls.

    Counts how many would be allowed, asked about and denied.
    """
    from ollm.app.policy_views import run_backtest
    from ollm.cli.policy.backtest import print_result
    from ollm.cli.table import warn

    process = _make_process(workspace)
    result = run_backtest(process, _make_engine(process, None), _make_engine(process, file, builtin=True), warn)
    if as_json:
        print_json(result)
    else:
        print_result(result)


def _make_process(workspace: str | None) -> ProcessScope:
    from ollm.app import ProcessScope

    return ProcessScope(workspace=resolve_workspace(workspace))


def _make_engine(process: ProcessScope, rules: str | None, *, builtin: bool = False) -> PolicyEngine:
    from pathlib import Path

    from ollm.app import WorkspaceScope
    from ollm.cli.table import warn

    assert process.workspace is not None
    scope = WorkspaceScope(process, process.workspace)
    engine = scope.create_policy() if rules is None else scope.create_policy_from_file(Path(rules), builtin=builtin)
    for problem in engine.rules.problems:
        warn(problem)
    return engine
