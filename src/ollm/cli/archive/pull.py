"""`archive pull` and `archive forget`: take a session up here, or delete it there."""

from __future__ import annotations

import click

from ollm.cli.options import confirm_or_fail, resolve_workspace, workspace_option, yes_option
from ollm.cli.table import warn
from ollm.system.terminal_text import make_printable


@click.command()
@click.argument("session", metavar="ID")
@click.option("--fork", is_flag=True, help="Make a new session from it, with an id of its own.")
@workspace_option
def pull(session: str, fork: bool, workspace: str | None) -> None:
    """Get a session from the archive as it was archived; go on with it with `ollm -r ID`.

    A session of a folder that this machine does not have goes to the current one, or to --workspace.
    """
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope

    process = ProcessScope()
    archive = TeamArchiveScope(process)
    with archive.connect() as connection:
        pulled = archive.pull(connection, session, fork=fork)
    place = archive.find_place(pulled.session_id, resolve_workspace(workspace))
    if pulled.damaged:
        warn(f"it was damaged when it was archived: {make_printable(pulled.damaged)}.")
    if pulled.unchanged:
        print(f"Session {pulled.session_id} is up to date.")
        return
    what = f"Forked session {pulled.source} as" if fork else "Pulled session"
    short = process.session_files.places.shorten_id(pulled.session_id)
    print(f"{what} {pulled.session_id}. Continue it in {make_printable(str(place))}: `ollm -r {short}`.")


@click.command()
@click.argument("session", metavar="ID")
@yes_option
def forget(session: str, yes: bool) -> None:
    """Delete a session of yours from the archive. It stays on this machine and is not sent again."""
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope

    archive = TeamArchiveScope(ProcessScope())
    with archive.connect() as connection:
        found = archive.find_own(connection, session)
        title = f" “{make_printable(found.title)}”" if found.title else ""
        confirm_or_fail(f"Delete session {found.session_id}{title} from the archive? This cannot be undone.", yes)
        archive.forget(connection, found.session_id)
    print(f"Deleted session {found.session_id} from the archive.")
