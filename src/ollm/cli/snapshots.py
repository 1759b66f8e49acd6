"""`ollm snapshots`: view the snapshots of a session, take one, or go back to one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ollm.app.closed_session import ClosedSession
from ollm.app.process import ProcessScope
from ollm.cli.options import confirm_or_fail, format_table, print_result, resolve_workspace, shared_options
from ollm.cli.sessions.view import resolve_session_id
from ollm.domain.clock import format_age
from ollm.domain.errors import OllmError
from ollm.services.snapshots import read_context
from ollm.store.snapshot_files import make_summary
from ollm.system.terminal_text import make_printable


@click.group()
def snapshots() -> None:
    """List, create, restore and delete context snapshots.

    SNAP is a snapshot id or a prefix of at least 4 characters.
    """


@snapshots.command("list")
@shared_options("session", "workspace", "json")
def list_snapshots(session: str | None, workspace: Path, as_json: bool) -> None:
    """List a session's snapshots, newest first.

    Without ID, those of the newest session of the workspace.
    """
    scope = _open_scope(workspace)
    found = asyncio.run(scope.snapshots.list_snapshots(resolve_session_id(scope.process, session, workspace)))
    rows = [(one.id, format_age(one.timestamp), one.token_count, one.trigger, one.summary) for one in found]
    table = format_table(("snapshot", "taken", "tokens", "why", "what"), rows, "No snapshots of this session.")
    print_result(found, table, as_json=as_json)


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
@shared_options("json")
def show(snapshot: str, as_json: bool) -> None:
    """Show a snapshot."""
    scope = _open_scope(resolve_workspace())
    found = scope.snapshot_files.load(scope.snapshot_files.find(snapshot))
    messages = (f"  {one.role:9} {' '.join(one.content.split())[:100]}" for one in read_context(found).messages)
    lines = (
        f"Snapshot {found.id} of session {found.session_id}, taken {format_age(found.timestamp)} ({found.trigger})",
        f"{found.token_count} tokens of {found.metadata.context_size}, mode {found.mode}, {found.summary}",
        *messages,
    )
    print_result(found, "\n".join(map(make_printable, lines)), as_json=as_json)


@snapshots.command()
@shared_options("session", "workspace", "json")
def create(session: str | None, workspace: Path, as_json: bool) -> None:
    """Create a snapshot of a session's context."""
    scope = _open_scope(workspace)
    made = asyncio.run(scope.take_snapshot(resolve_session_id(scope.process, session, workspace)))
    if made is None:
        raise OllmError(scope.explain_refusal())
    print_result(make_summary(made), f"Took snapshot {made.id}: {made.summary}", as_json=as_json)


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
def restore(snapshot: str) -> None:
    """Restore a snapshot.

    The session goes on from there when it is next resumed.

    The context of now is kept as a snapshot first, and nothing leaves the session's record.
    """
    scope = _open_scope(resolve_workspace())
    found = scope.snapshot_files.find(snapshot)
    print(f"Session {asyncio.run(scope.restore_snapshot(found))} restored from snapshot {found}.")


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
@shared_options("yes")
def delete(snapshot: str, yes: bool) -> None:
    """Delete a snapshot permanently; the session is kept."""
    scope = _open_scope(resolve_workspace())
    found = scope.snapshot_files.find(snapshot)
    confirm_or_fail(f"Delete snapshot {found} permanently?", yes)
    asyncio.run(scope.snapshots.delete_snapshot(found))
    print(f"Deleted snapshot {found}.")


def _open_scope(workspace: Path) -> ClosedSession:
    return ClosedSession(ProcessScope(workspace=workspace), workspace)
