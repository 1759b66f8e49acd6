"""`archive status` and `archive setup`: where the archive is, whether it answers, who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ollm.cli.options import json_option, print_json
from ollm.domain.errors import BusyError, ExitCode, UsageError
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.app.team_archive import TeamArchiveScope


@click.command()
@click.argument("session", metavar="[ID]", required=False)
@click.option("--take", is_flag=True, help="Take the session's lease, if it is free.")
@click.option("--force", is_flag=True, help="Take the lease from the machine that has it.")
@json_option
def status(session: str | None, take: bool, force: bool, as_json: bool) -> int:
    """Show where the archive is, whether it answers and what is not sent yet; exit code 1 if it does not answer.

    With ID: whether this machine may go on with that session; exit code 5 if another one does.
    """
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope

    process = ProcessScope()
    settings = process.settings.archive
    if not (settings.url or settings.url_env):
        found: dict[str, Any] = {"configured": False}
        text = "No archive is set; nothing is sent. See `ollm archive --help` and docs/team-archive.md."
        print_json(found) if as_json else print(text)
        return ExitCode.DONE
    if session:
        return show_lease(TeamArchiveScope(process), session, take=take or force, force=force)
    found = TeamArchiveScope(process).describe()
    if as_json:
        print_json(found)
    else:
        print(
            "\n".join(f"{name + ':':<12}{make_printable(str(value))}" for name, value in format_status(found).items())
        )
    return ExitCode.DONE if found["reachable"] else ExitCode.FAILED


def show_lease(archive: TeamArchiveScope, prefix: str, *, take: bool, force: bool) -> int:
    """Say whether the session may be gone on with here."""
    session_id = archive.process.session_files.places.find(prefix)
    try:
        with archive.connect(timeout=2) as connection:
            archive.require_free(connection, session_id, take=take, force=force)
    except BusyError as error:
        print(make_printable(str(error)))
        return ExitCode.DENIED
    print(f"Session {session_id} can be gone on with here.")
    return ExitCode.DONE


def format_status(found: dict[str, Any]) -> dict[str, str]:
    from ollm.domain.counting import format_count

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


@click.command()
@click.option("--person", "people", metavar="ROLE", multiple=True, help="Let a database role use the archive.")
@click.option("--team", metavar="TEAM", help="Put these people into a team: they see each other's sessions.")
def setup(people: tuple[str, ...], team: str | None) -> None:
    """Create or update the archive's tables, as the role that owns the database."""
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope
    from ollm.store.team_archive.connection import translate_faults

    if team and not people:
        raise UsageError("--team needs --person.", action="For example: --person alice --person bob --team compilers.")
    archive = TeamArchiveScope(ProcessScope())
    with archive.connect() as connection, translate_faults():
        for person in people:
            connection.execute("SELECT ollm.add_person(%s, %s)", (person, team))
    print(f"The archive at {archive.target.place} is ready.")
    for person in people:
        print(f"Added {make_printable(person)}" + (f" to team {make_printable(team)}." if team else "."))
