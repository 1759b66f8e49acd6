"""`ollm archive`: the family. Each command's module is imported when that command is called."""

from __future__ import annotations

import click

from ollm.cli.lazy_group import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "status": ("ollm.cli.archive.status:status", "Show where the archive is and what is not sent yet."),
    "setup": ("ollm.cli.archive.status:setup", "Create or update the archive's tables; add people and teams."),
    "push": ("ollm.cli.archive.push:push", "Send sessions to the archive."),
    "list": ("ollm.cli.archive.listing:list_archived", "List the sessions in the archive."),
    "search": ("ollm.cli.archive.listing:search", "Search all messages in the archive."),
    "pull": ("ollm.cli.archive.pull:pull", "Get a session from the archive, to continue it here."),
    "forget": ("ollm.cli.archive.pull:forget", "Delete a session from the archive; it stays on this machine."),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def archive() -> None:
    """Share sessions between machines through PostgreSQL.

    ID is a session id or a prefix of at least 4 characters.
    """
