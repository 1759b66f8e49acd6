"""`ollm trust`: say which workspaces' own settings, hooks, commands and instructions may be used."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json, resolve_workspace
from ollm.cli.table import print_table
from ollm.domain.clock import format_age
from ollm.system.terminal_text import make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ollm.policy.trust import TrustBook, TrustState


@click.command()
@click.argument("directory", required=False)
@click.option("--list", "listing", is_flag=True, help="List trusted workspaces.")
@click.option("--revoke", is_flag=True, help="Stop trusting the workspace.")
@json_option
def trust(directory: str | None, listing: bool, revoke: bool, as_json: bool) -> None:
    """Trust DIRECTORY (default: the current one) with the files it has now; a change asks again."""
    if listing and (revoke or directory):
        raise click.UsageError("--list cannot be combined with other options.")
    book = _open_book()
    if listing:
        _print_states(book.list_states(), as_json)
        return
    workspace = resolve_workspace(directory)
    if revoke:
        book.revoke(workspace)
        print_json({"workspace": str(workspace), "trusted": False}) if as_json else print(
            f"{workspace}: no longer trusted."
        )
        return
    before, after = book.get_state(workspace), book.trust(workspace)
    if as_json:
        print_json(after)
    else:
        _report_trust(before, after)


def _open_book() -> TrustBook:
    from ollm.config.environment import copy_environment, find_home
    from ollm.policy.trust import TrustBook

    return TrustBook(find_home(copy_environment()).trust)


def _print_states(states: list[TrustState], as_json: bool) -> None:
    if as_json:
        print_json(states)
    elif not states:
        print("No trusted workspaces.")
    else:
        rows = [
            (state.workspace, format_age(state.since or ""), "yes" if state.trusted else "changed since")
            for state in states
        ]
        print_table(("workspace", "since", "trusted"), rows)


def _report_trust(before: TrustState, after: TrustState) -> None:
    if before.trusted:
        print(f"{after.workspace} is already trusted.")
        return
    print(
        f"Trusted {after.workspace} with:" if after.files else f"Trusted {after.workspace}; it contains no agent files."
    )
    marks = {**dict.fromkeys(before.added, " (new)"), **dict.fromkeys(before.changed, " (changed)")}
    for name in after.files:
        print(f"  {make_printable(name)}{marks.get(name, '')}")
    for name in before.removed:
        print(f"  {make_printable(name)} (gone)")
