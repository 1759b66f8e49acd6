"""`ollm trust`, and the question about an unknown workspace."""

from __future__ import annotations

from pathlib import Path

import click

from ollm.app.process import ProcessScope
from ollm.cli.options import format_table, print_result, resolve_workspace, shared_options
from ollm.domain.clock import format_age
from ollm.domain.text import format_names
from ollm.policy.trust import TrustBook, TrustState
from ollm.system.terminal_text import make_printable


@click.command()
@click.argument("directory", required=False)
@click.option("--list", "listing", is_flag=True, help="List trusted workspaces.")
@click.option("--revoke", is_flag=True, help="Stop trusting the workspace.")
@shared_options("json")
def trust(directory: str | None, listing: bool, revoke: bool, as_json: bool) -> None:
    """Trust DIRECTORY (default: the current one) and its agent files. ollm asks again when they change."""
    if listing and (revoke or directory):
        raise click.UsageError("--list cannot be combined with other options.")
    if listing:
        states = ProcessScope().trust_book.list_states()
        rows = [
            (one.workspace, format_age(one.since or ""), "yes" if one.trusted else "changed since") for one in states
        ]
        table = format_table(("workspace", "since", "trusted"), rows, "No trusted workspaces.")
        print_result(states, table, as_json=as_json)
        return
    workspace = resolve_workspace(directory)
    book = ProcessScope(workspace=workspace).trust_book
    if revoke:
        book.revoke(workspace)
        document = {"workspace": str(workspace), "trusted": False}
        print_result(document, f"{workspace}: no longer trusted.", as_json=as_json)
        return
    before, after = book.get_state(workspace), book.trust(workspace)
    print_result(after, "\n".join(_describe_trust(before, after)), as_json=as_json)


def _describe_trust(before: TrustState, after: TrustState) -> list[str]:
    if before.trusted:
        return [f"{after.workspace} is already trusted."]
    head = f"Trusted {after.workspace}" + (" with:" if after.files else "; it contains no agent files.")
    marks = {**dict.fromkeys(before.added, " (new)"), **dict.fromkeys(before.changed, " (changed)")}
    files = [f"  {make_printable(name)}{marks.get(name, '')}" for name in after.files]
    return [head, *files, *(f"  {make_printable(name)} (gone)" for name in before.removed)]


def format_question(state: TrustState) -> str:
    what = "has changed since you trusted it" if state.known else "contains agent instructions"
    lines = [f"  {make_printable(line)}" for line in state.describe_files()]
    return "\n".join([f"{make_printable(state.workspace)} {what}:", *lines])


def ask_trust(book: TrustBook, workspace: Path) -> None:
    """Ask about trust, unless there are no files or these exact files were answered for."""
    state = book.get_state(workspace)
    if not state.unanswered:
        return
    print(format_question(state))
    try:
        answer = input("Trust them? Only if you know who wrote them. [y/N] ").strip().lower()
    except EOFError:
        return
    if answer in ("y", "yes"):
        book.trust(workspace)
    else:
        book.decline(workspace)
        print("Not used. Run `ollm trust` to change that.")


def describe_untrusted(state: TrustState) -> str:
    """Describe untrusted files in one line for non-interactive use."""
    names = format_names([make_printable(name) for name in state.files], 3)
    place = make_printable(state.workspace)
    return f"{place} is not trusted, so these files are ignored: {names}. Run `ollm trust` to use them."
