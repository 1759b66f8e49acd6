"""`ollm snapshots`: look at the snapshots of a session, take one, go back to one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ollm.cli.options import confirm_or_fail, json_option, print_json, resolve_workspace, workspace_option, yes_option
from ollm.cli.printable import printable
from ollm.cli.table import print_table
from ollm.domain.errors import NotFoundError, OllmError

if TYPE_CHECKING:
    from ollm.app import StoredScope

SHORTEST_PREFIX = 4


@click.group()
def snapshots() -> None:
    """List, take, restore and delete snapshots of what the model saw.

    SNAP is a snapshot's id or its first characters, four at least.
    """


@snapshots.command("list")
@click.argument("session", metavar="[ID]", required=False)
@workspace_option
@json_option
def list_snapshots(session: str | None, workspace: str | None, as_json: bool) -> None:
    """List a session's snapshots, newest first.

    Without ID, those of the newest session of the workspace.
    """
    scope = _scope(workspace)
    found = asyncio.run(scope.snapshots.list_snapshots(_session(scope, session, workspace)))
    if as_json:
        print_json(found)
    elif not found:
        print("There is no snapshot of this session.")
    else:
        rows = [(entry.id, entry.timestamp, entry.token_count, entry.trigger, entry.summary) for entry in found]
        print_table(("snapshot", "taken", "tokens", "why", "what"), rows)


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
@json_option
def show(snapshot: str, as_json: bool) -> None:
    """What a snapshot holds."""
    scope = _scope(None)
    found = scope.snapshot_files.load(_one(scope, snapshot))
    if as_json:
        print_json(found)
        return
    print(f"Snapshot {found.id} of session {found.session_id}, taken {found.timestamp} ({found.trigger})")
    print(f"{found.token_count} tokens of {found.metadata.context_size}, mode {found.mode}, {printable(found.summary)}")
    from ollm.services.snapshots import context_of

    for message in context_of(found).messages:
        print(f"  {message.role:9} {printable(' '.join(message.content.split())[:100])}")


@snapshots.command()
@click.argument("session", metavar="[ID]", required=False)
@workspace_option
@json_option
def create(session: str | None, workspace: str | None, as_json: bool) -> None:
    """Take a snapshot of a session's context now."""
    scope = _scope(workspace)
    made = asyncio.run(scope.take_snapshot(_session(scope, session, workspace)))
    if made is None:
        raise OllmError(scope.why_not())
    if as_json:
        from ollm.store.snapshot_files import summary_of

        print_json(summary_of(made))
    else:
        print(f"Took snapshot {made.id}: {made.summary}")


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
def restore(snapshot: str) -> None:
    """Go back to a snapshot.

    The session goes on from there when it is next resumed.

    The context of now is kept as a snapshot first, and nothing leaves the session's record.
    """
    scope = _scope(None)
    found = _one(scope, snapshot)
    print(f"Session {asyncio.run(scope.restore_snapshot(found))} goes on from snapshot {found}.")


@snapshots.command()
@click.argument("snapshot", metavar="SNAP")
@yes_option
def delete(snapshot: str, yes: bool) -> None:
    """Delete a snapshot for good; the session itself stays whole."""
    scope = _scope(None)
    found = _one(scope, snapshot)
    confirm_or_fail(f"Delete snapshot {found} for good?", yes)
    asyncio.run(scope.snapshots.delete_snapshot(found))
    print(f"Deleted snapshot {found}.")


def _scope(workspace: str | None) -> StoredScope:
    from ollm.app import Process, StoredScope

    place = resolve_workspace(workspace)
    return StoredScope(Process(workspace=place), place)


def _session(scope: StoredScope, session: str | None, workspace: str | None) -> str:
    from ollm.cli.sessions.view import chosen

    return chosen(scope.process, session, workspace)


def _one(scope: StoredScope, name: str) -> str:
    """The id that was meant."""
    fits = scope.snapshot_files.matching(name) if len(name) >= SHORTEST_PREFIX else []
    if name in fits:
        return name
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise NotFoundError(f"{len(fits)} snapshots begin with {name!r}.", action="Give more of its id.")
    raise NotFoundError(f"There is no snapshot {name!r}.", action="`ollm snapshots list` shows those there are.")
