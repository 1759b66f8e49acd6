"""`ollm sessions`: the command group. Each command's module is imported on use."""

from __future__ import annotations

import click

from ollm.cli.commands import CommandTable, LazyGroup

COMMANDS: CommandTable = {
    "list": ("ollm.cli.sessions.listing:list_sessions", "List all sessions, last active first."),
    "attach": ("ollm.cli.web:attach", "Open a session that runs in the daemon."),
    "view": ("ollm.cli.sessions.view:view", "Read a session."),
    "export": ("ollm.cli.sessions.view:export", "Write a session to a file: JSON, Markdown or HTML."),
    "search": ("ollm.cli.sessions.listing:search", "Search all messages."),
    "delete": ("ollm.cli.sessions.manage:delete", "Delete a session permanently."),
    "clear": ("ollm.cli.sessions.manage:clear", "Delete all sessions permanently."),
    "cleanup": ("ollm.cli.sessions.manage:cleanup", "Delete all but the newest sessions permanently."),
    "restore": ("ollm.cli.sessions.manage:restore", "Restore a session from the trash."),
    "archive": ("ollm.cli.sessions.manage:archive", "Archive a session."),
    "unarchive": ("ollm.cli.sessions.manage:unarchive", "Unarchive a session."),
    "rename": ("ollm.cli.sessions.manage:rename", "Rename a session."),
    "rewind": ("ollm.cli.sessions.manage:rewind", "Go back to before a message, with --files its files too."),
    "fork": ("ollm.cli.sessions.manage:fork", "Copy a session up to a message to a new one."),
    "redo": ("ollm.cli.sessions.manage:redo", "Take back the last rewind."),
    "scrub": ("ollm.cli.sessions.scrub:scrub", "Remove a text, such as a password, from everything."),
    "check": ("ollm.cli.sessions.manage:check", "Find damaged sessions; --repair fixes them."),
}


@click.command(cls=LazyGroup, table=COMMANDS)
def sessions() -> None:
    """List, view, search, export and delete sessions.

    ID is a session id or a prefix of at least 4 characters.
    """
