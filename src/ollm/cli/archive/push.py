"""`archive push`: sends what the archive does not hold yet, and says before the first time what that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ollm.cli.completers import complete_session
from ollm.cli.options import json_option, print_json
from ollm.cli.table import warn
from ollm.domain.errors import ExitCode, UsageError
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.app.archive_pushing import PushReport
    from ollm.app.team_archive import TeamArchiveScope


@click.command()
@click.argument("sessions", metavar="[ID]...", nargs=-1, shell_complete=complete_session)
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@click.option(
    "--fork", is_flag=True, help="Send what is here as a new session: for one that was also continued elsewhere."
)
@click.option("--watch", is_flag=True, help="Stay and send what is new while a session is open (archive.push decides).")
@click.option("--keeper", type=int, hidden=True)
@click.option("--linger", type=float, default=5.0, hidden=True)
@json_option
def push(
    sessions: tuple[str, ...],
    dry_run: bool,
    fork: bool,
    watch: bool,
    keeper: int | None,
    linger: float,
    as_json: bool,
) -> int:
    """Send sessions to the archive: those named, or all that changed since they were last sent.

    Exit code 1 if one could not be sent.
    """
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope
    from ollm.cli.sessions.table import make_progress

    process = ProcessScope()
    archive = TeamArchiveScope(process)
    ids = [process.session_files.places.find(prefix) for prefix in sessions] or None
    if dry_run:
        print(archive.describe_push(ids))
        return ExitCode.DONE
    if watch:
        from ollm.app.archive_shipper import ArchiveShipper, run_quietly

        run_quietly(ArchiveShipper(archive, keeper=keeper, linger=linger).run)
        return ExitCode.DONE
    if fork:
        return push_forks(archive, ids or [], as_json=as_json)
    with archive.connect() as connection:
        if notice := archive.announce(ids):
            warn(notice)
        report = archive.push(connection, ids, make_progress("Sending"))
    if as_json:
        print_json(report)
    else:
        print_report(report)
    return ExitCode.FAILED if report.skipped else ExitCode.DONE


def push_forks(archive: TeamArchiveScope, ids: list[str], *, as_json: bool) -> int:
    """Send each of these as a session of its own; the sessions themselves become what the archive has."""
    from ollm.app.archive_forks import push_fork

    if not ids:
        raise UsageError("--fork needs the ID of a session.", action="For example: ollm archive push ID --fork.")
    with archive.connect() as connection:
        forks = [push_fork(archive, connection, session_id) for session_id in ids]
    if as_json:
        print_json(forks)
        return ExitCode.DONE
    for fork in forks:
        there = make_printable(f"{fork.owner} on {fork.host}")
        print(f"Sent what was said here as session {fork.session_id}.")
        print(
            f"Session {fork.source} stays as it is here: {make_printable(fork.behind)}"
            if fork.behind
            else f"Session {fork.source} is now as it is in the archive, from {there}."
        )
    return ExitCode.DONE


def print_report(report: PushReport) -> None:
    from ollm.domain.counting import format_count

    for session_id, why in report.skipped.items():
        warn(f"{session_id} was not sent: {make_printable(why)}")
    if report.sessions:
        print(f"Sent {format_count(report.sessions, 'session')} ({format_count(report.records, 'record')}).")
    if report.deleted:
        print(f"Deleted {format_count(report.deleted, 'session')} there.")
    if not (report.sessions or report.deleted or report.skipped):
        print("Nothing to send; the archive is up to date.")
