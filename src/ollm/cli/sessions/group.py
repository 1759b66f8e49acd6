"""`ollm sessions`: the family. Each command's module is imported when that command is called."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("ollm.cli.sessions.listing:list_sessions", "List all sessions, last active first."),
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
    "check": ("ollm.cli.sessions.check:check", "Find damaged sessions; --repair fixes them."),
}


class SessionsGroup(click.Group):
    """Knows the names of its commands, imports one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(cls=SessionsGroup)
def sessions() -> None:
    """List, view, search, export and delete sessions.

    ID is a session id or a prefix of at least 4 characters.
    """
