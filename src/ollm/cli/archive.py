"""`ollm archive`: share sessions between machines through PostgreSQL."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click
import msgspec

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.archive.listing import make_row
from ollm.archive.reading import list_sessions, search_messages
from ollm.archive.shipper import ArchiveShipper, run_quietly
from ollm.archive.team_archive import PushReport, TeamArchive, push_fork
from ollm.cli.completion import complete_session
from ollm.cli.options import confirm_or_fail, make_progress, print_json, print_result, shared_options, warn
from ollm.cli.sessions.listing import parse_since, print_hits, print_sessions
from ollm.domain.errors import BusyError, ExitCode, UsageError
from ollm.domain.text import format_count
from ollm.system.terminal_text import make_printable


@click.group()
def archive() -> None:
    """Share sessions between machines through PostgreSQL.

    ID is a session id or a prefix of at least 4 characters.
    """


@archive.command(short_help="Show where the archive is and what is not sent yet.")
@click.argument("session", metavar="[ID]", required=False)
@click.option("--take", is_flag=True, help="Take the session's lease, if it is free.")
@click.option("--force", is_flag=True, help="Take the lease from the machine that has it.")
@shared_options("json")
def status(session: str | None, take: bool, force: bool, as_json: bool) -> int:
    """Show where the archive is, whether it answers and what is not sent yet; exit code 1 if it does not answer.

    With ID: whether this machine may go on with that session; exit code 5 if another one does.
    """
    process = ProcessScope()
    settings = process.settings.archive
    if not settings.is_set:
        text = "No archive is set; nothing is sent. See `ollm archive --help` and docs/team-archive.md."
        print_result({"configured": False}, text, as_json=as_json)
        return ExitCode.DONE
    if session is not None:
        return show_lease(TeamArchive(process), session, take=take or force, force=force)
    found = TeamArchive(process).describe()
    lines = [f"{name + ':':<12}{make_printable(str(value))}" for name, value in format_status(found).items()]
    print_result(found, "\n".join(lines), as_json=as_json)
    return ExitCode.DONE if found["reachable"] else ExitCode.FAILED


def show_lease(archive: TeamArchive, prefix: str, *, take: bool, force: bool) -> int:
    """Print whether the session can be resumed here, and return the exit code."""
    session_id = archive.host.session_files.places.find(prefix)
    try:
        with archive.connect(timeout=2) as connection:
            archive.require_free(connection, session_id, take=take, force=force)
    except BusyError as error:
        print(make_printable(str(error)))
        return ExitCode.DENIED
    print(f"Session {session_id} can be gone on with here.")
    return ExitCode.DONE


def format_status(found: dict[str, Any]) -> dict[str, str]:
    settings = found["settings"]
    schema = f"schema {found.get('schema')}" if found.get("schema") else "not set up yet (a push does that)"
    lines = {
        "archive": found["place"],
        "server": f"answers, {schema}, as {found['owner']}" if found["reachable"] else found["error"],
        "push": settings["push"] + ("" if settings["redact"] else ", secrets are NOT redacted"),
        "workspaces": ", ".join(settings["workspaces"]) or "all",
        "deletes": settings["deletes"],
        "to send": f"{format_count(found['unsentSessions'], 'session')} ({found['unsentBytes'] / 1e6:,.1f} MB)",
    }
    if found["reachable"]:
        lines["there"] = (
            f"{format_count(found['sessions'], 'session')} you may see, {found['ownSessions']:,} of them yours"
        )
    if found["deletionsWaiting"]:
        lines["to delete"] = (
            f"{format_count(found['deletionsWaiting'], 'session')} deleted here, not confirmed there yet"
        )
    if found["lastError"]:
        lines["last error"] = found["lastError"]
    return lines


@archive.command(short_help="Create or update the archive's tables; add people and teams.")
@click.option("--person", "people", metavar="ROLE", multiple=True, help="Let a database role use the archive.")
@click.option("--team", metavar="TEAM", help="Put these people into a team: they see each other's sessions.")
def setup(people: tuple[str, ...], team: str | None) -> None:
    """Create or update the archive's tables, as the role that owns the database."""
    if team and not people:
        raise UsageError("--team needs --person.", action="For example: --person alice --person bob --team compilers.")
    archive = TeamArchive(ProcessScope())
    with archive.connect() as connection:
        for person in people:
            connection.execute("SELECT ollm.add_person(%s, %s)", (person, team))
    print(f"The archive at {archive.target.place} is ready.")
    for person in people:
        print(f"Added {make_printable(person)}" + (f" to team {make_printable(team)}." if team else "."))


@archive.command(short_help="Send sessions to the archive.")
@click.argument("sessions", metavar="[ID]...", nargs=-1, shell_complete=complete_session)
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@click.option(
    "--fork", is_flag=True, help="Send what is here as a new session: for one that was also continued elsewhere."
)
@click.option("--watch", is_flag=True, help="Stay and send what is new while a session is open (archive.push decides).")
@click.option("--keeper", type=int, hidden=True)
@click.option("--linger", type=float, default=5.0, hidden=True)
@shared_options("json")
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
    process = ProcessScope()
    archive = TeamArchive(process)
    ids = [process.session_files.places.find(prefix) for prefix in sessions] or None
    if dry_run:
        print(archive.describe_push(ids))
        return ExitCode.DONE
    if watch:
        run_quietly(ArchiveShipper(archive, keeper=keeper, linger=linger).run)
        return ExitCode.DONE
    if fork:
        return push_forks(archive, ids or [], as_json=as_json)
    with archive.connect() as connection:
        if notice := archive.announce(ids):
            warn(notice)
        report = archive.push(connection, ids, make_progress("Sending"))
    warn(*(f"{session_id} was not sent: {make_printable(why)}" for session_id, why in report.skipped.items()))
    print_result(report, describe_push(report), as_json=as_json)
    return ExitCode.FAILED if report.skipped else ExitCode.DONE


def push_forks(archive: TeamArchive, ids: list[str], *, as_json: bool) -> int:
    """Push each local version as a new session; the original then takes the archive's version."""
    if not ids:
        raise UsageError("--fork needs the ID of a session.", action="For example: ollm archive push ID --fork.")
    with archive.connect() as connection:
        forks = [push_fork(archive, connection, session_id) for session_id in ids]
    lines = []
    for fork in forks:
        there = f"is now as it is in the archive, from {fork.owner} on {fork.host}."
        lines.append(f"Sent what was said here as session {fork.session_id}.")
        lines.append(f"Session {fork.source} {f'stays as it is here: {fork.behind}' if fork.behind else there}")
    print_result(forks, "\n".join(map(make_printable, lines)), as_json=as_json)
    return ExitCode.DONE


def describe_push(report: PushReport) -> str:
    if not (report.sessions or report.deleted):
        return "Nothing was sent." if report.skipped else "Nothing to send; the archive is up to date."
    sent = f"Sent {format_count(report.sessions, 'session')} ({format_count(report.records, 'record')})."
    deleted = f"Deleted {format_count(report.deleted, 'session')} there."
    return "\n".join([sent] * bool(report.sessions) + [deleted] * bool(report.deleted))


@archive.command("list", short_help="List the sessions in the archive.")
@click.option("--limit", type=click.IntRange(min=1, max=1000), default=100, show_default=True, help="Maximum to show.")
@shared_options("tasks", "json")
def list_archived(limit: int, tasks: bool, as_json: bool) -> None:
    """List the sessions in the archive that you may see, last active first."""
    archive = TeamArchive(ProcessScope())
    with archive.connect() as connection:
        found = list_sessions(connection, limit=limit, tasks=tasks)
    if as_json:
        print_json(found)
        return
    if not found:
        warn("the archive holds no session that you may see.")
        return
    print_sessions([make_row(row) for row in msgspec.to_builtins(found)])


@archive.command(short_help="Search all messages in the archive.")
@click.argument("text", nargs=-1, required=True)
@shared_options("role", "since", "limit", "tasks", "json")
def search(text: tuple[str, ...], role: str | None, since: str | None, limit: int, tasks: bool, as_json: bool) -> None:
    """Search all messages in the archive that you may see. TEXT is taken literally; all its words must be there."""
    wanted = parse_since(since) if since else None
    archive = TeamArchive(ProcessScope())
    with archive.connect() as connection:
        hits = search_messages(connection, " ".join(text), limit=limit, role=role, since=wanted, tasks=tasks)
    rows = msgspec.to_builtins(hits)
    print_hits(rows if as_json else [{**hit, "archive": hit} for hit in rows], (), as_json=as_json)


@archive.command(short_help="Get a session from the archive, to continue it here.")
@click.argument("session", metavar="ID")
@click.option("--fork", is_flag=True, help="Make a new session from it, with an id of its own.")
@shared_options("workspace")
def pull(session: str, fork: bool, workspace: Path) -> None:
    """Get a session from the archive as it was archived; go on with it with `ollm -r ID`.

    A session of a folder that this machine does not have goes to the current one, or to --workspace.
    """
    process = ProcessScope()
    archive = TeamArchive(process)
    with archive.connect() as connection:
        pulled = archive.pull(connection, session, fork=fork)
    place = find_place(process, pulled.session_id, workspace)
    if pulled.damaged:
        warn(f"it was damaged when it was archived: {make_printable(pulled.damaged)}.")
    if pulled.unchanged:
        print(f"Session {pulled.session_id} is up to date.")
        return
    what = f"Forked session {pulled.source} as" if fork else "Pulled session"
    short = process.session_files.places.shorten_id(pulled.session_id)
    print(f"{what} {pulled.session_id}. Continue it in {make_printable(str(place))}: `ollm -r {short}`.")


def find_place(process: ProcessScope, session_id: str, here: Path) -> Path:
    """Find the folder for a pulled session: its own, or `here` if that does not exist on this machine."""
    held = process.session_files.describe_session(session_id).metadata.workspace
    if held is None or Path(held) == here:
        return here
    if Path(held).is_dir():
        return Path(held)
    with contextlib.closing(WorkspaceScope(process, here)) as scope:
        scope.context.adopt(session_id, held)
    return here


@archive.command(short_help="Delete a session from the archive; it stays on this machine.")
@click.argument("session", metavar="ID")
@shared_options("yes")
def forget(session: str, yes: bool) -> None:
    """Delete a session of yours from the archive. It stays on this machine and is not sent again."""
    archive = TeamArchive(ProcessScope())
    with archive.connect() as connection:
        found = archive.find_own(connection, session)
        title = f" “{make_printable(found.title)}”" if found.title else ""
        confirm_or_fail(f"Delete session {found.session_id}{title} from the archive? This cannot be undone.", yes)
        archive.forget(connection, found.session_id)
    print(f"Deleted session {found.session_id} from the archive.")
