"""`sessions rewind` and `sessions redo`: a session that is not open goes back to before a message, and forward
again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.cli.completers import complete_session
from ollm.cli.options import json_option, print_json, resolve_workspace, workspace_option
from ollm.domain.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ollm.app import ClosedSession
    from ollm.app.rewind_outcome import RewindOutcome


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@click.option("--to", "number", type=click.IntRange(1), required=True, metavar="N", help="Message to go back before.")
@click.option("--files", is_flag=True, help="Also put files back as they were before that message.")
@click.option("--force", is_flag=True, help="Also files that others changed since.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@workspace_option
@json_option
def rewind(
    session: str | None, number: int, files: bool, force: bool, dry_run: bool, workspace: str | None, as_json: bool
) -> int:
    """Go back to before a message of yours; the history stays.

    The session goes on from there when it is next resumed. Without ID, the newest session of the workspace. The state
    before is saved too: `ollm sessions redo` or /redo in the chat takes it back. Exit code 1 if a file was left alone.
    """
    from ollm.app.closed_rewind import ClosedRewind

    closed, session_id = open_closed_session(session, workspace, files=files)
    going_back = ClosedRewind(closed, session_id)
    return print_outcome(
        asyncio.run(going_back.run(number, files=files, force=force, dry_run=dry_run)), as_json=as_json
    )


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@click.option("--force", is_flag=True, help="Also files that others changed since.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@workspace_option
@json_option
def redo(session: str | None, force: bool, dry_run: bool, workspace: str | None, as_json: bool) -> int:
    """Take back the last rewind, as long as nothing was said since.

    Without ID, the newest session of the workspace. Exit code 1 if a file was left alone.
    """
    from ollm.app.closed_redo import ClosedRedo

    closed, session_id = open_closed_session(session, workspace, files=True)
    return print_outcome(asyncio.run(ClosedRedo(closed, session_id).run(force=force, dry_run=dry_run)), as_json=as_json)


def open_closed_session(session: str | None, workspace: str | None, *, files: bool) -> tuple[ClosedSession, str]:
    """A session in the folder it was held in. `files`: that folder must be there."""
    from ollm.app import ClosedSession, ProcessScope
    from ollm.cli.sessions.view import resolve_session_id

    process = ProcessScope(workspace=resolve_workspace(workspace))
    session_id = resolve_session_id(process, session, workspace)
    place = resolve_workspace(workspace)
    if workspace is None and (held_in := process.session_files.describe_session(session_id).metadata.workspace):
        place = Path(held_in)
    if files and not place.is_dir():
        raise UsageError(f"{place} is not there any more.", action="Name where it is now with --workspace.")
    return ClosedSession(ProcessScope(workspace=place), place), session_id


def print_outcome(done: RewindOutcome, *, as_json: bool) -> int:
    if as_json:
        print_json(done)
    else:
        print(done.text)
    return ExitCode.FAILED if done.skipped and not done.dry_run else ExitCode.DONE
