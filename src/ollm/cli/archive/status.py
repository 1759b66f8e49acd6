"""`archive status` and `archive setup`: where the archive is, whether it answers, who may use it."""

from __future__ import annotations

from typing import Any

import click

from ollm.cli.options import json_option, print_json
from ollm.domain.errors import ExitCode, UsageError
from ollm.system.terminal_text import make_printable


@click.command()
@json_option
def status(as_json: bool) -> int:
    """Show where the archive is, whether it answers and what is not sent yet; exit code 1 if it does not answer."""
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope

    process = ProcessScope()
    settings = process.settings.archive
    if not (settings.url or settings.url_env):
        found: dict[str, Any] = {"configured": False}
        text = "No archive is set; nothing is sent. See `ollm archive --help` and docs/team-archive.md."
        print_json(found) if as_json else print(text)
        return ExitCode.DONE
    found = TeamArchiveScope(process).describe()
    if as_json:
        print_json(found)
    else:
        print(
            "\n".join(f"{name + ':':<12}{make_printable(str(value))}" for name, value in format_status(found).items())
        )
    return ExitCode.DONE if found["reachable"] else ExitCode.FAILED


def format_status(found: dict[str, Any]) -> dict[str, str]:
    settings = found["settings"]
    lines = {
        "archive": found["place"],
        "server": f"answers, schema {found['schema']}, as {found['owner']}" if found["reachable"] else found["error"],
        "push": settings["push"] + ("" if settings["redact"] else ", secrets are NOT redacted"),
        "workspaces": ", ".join(settings["workspaces"]) or "all",
        "deletes": settings["deletes"],
        "to send": f"{found['unsentSessions']:,} sessions ({found['unsentBytes'] / 1e6:,.1f} MB)",
    }
    if found["reachable"]:
        lines["there"] = f"{found['sessions']:,} sessions you may see, {found['ownSessions']:,} of them yours"
    if found["deletionsWaiting"]:
        lines["to delete"] = f"{found['deletionsWaiting']:,} sessions deleted here, not confirmed there yet"
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
