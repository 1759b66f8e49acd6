"""Slash commands. The conversation runs them, so they work locally and in the daemon."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import BusyError, UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import TERMINAL_COMMANDS, SlashCommand, WrongUsage
from ollm.runtime.commands.help_text import CustomCommands, make_unknown_error

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts


def build_command_table() -> dict[str, SlashCommand]:
    """All commands by name, in the order of the alphabet."""
    from ollm.runtime.commands import context, diff, mcp, rewind, session, settings, work

    modules = (context, diff, mcp, rewind, session, settings, work)
    commands = (value for module in modules for value in vars(module).values() if isinstance(value, SlashCommand))
    return {command.name: command for command in sorted(commands, key=lambda command: command.name)}


def describe_commands(directories: tuple[Path, ...]) -> list[tuple[str, str, str]]:
    """Name, usage and help of every command outside a terminal: ours, then the person's own in `directories`."""
    table, own = build_command_table(), CustomCommands(directories)
    ours = [(one.name, one.usage, one.help) for one in table.values() if one.name not in TERMINAL_COMMANDS]
    return ours + [
        (name, own.read_field(name, "usage") or "[TEXT]", own.describe(name)) for name in own.files if name not in table
    ]


def leaves_context(name: str, arguments: str) -> bool:
    """Return True for a command that changes nothing in the context, since it may run during a turn."""
    found = build_command_table().get(name)
    return found is not None and found.runs_during_turn(arguments)


async def run_command(
    conversation: ConversationParts, name: str, arguments: str, *, busy: bool = False
) -> CommandReply:
    """Run `/name arguments`: one of ours, or a file of the workspace's `.ollm/commands`. `busy`: a turn is running."""
    table = build_command_table()
    if found := table.get(name):
        if busy and not found.runs_during_turn(arguments):
            raise BusyError(f"/{name} cannot run while the model works.", action="Wait for it, or stop it.")
        try:
            return await found.run(conversation, arguments)
        except WrongUsage as wrong:
            usage = f"/{name} {str(wrong) or found.usage}".rstrip()
            raise UsageError(f"Usage: {usage}.", action="See /help for all commands.") from wrong
    if ":" in name and conversation.mcp is not None:
        from ollm.runtime.commands.mcp import send_prompt

        server, _, prompt = name.partition(":")
        return await send_prompt(conversation.mcp, server, prompt, arguments)
    custom = CustomCommands(conversation.find_directories("commands"))
    if kind := custom.read_field(name, "changes"):
        from ollm.runtime.commands.git_changes import attach_changes

        expand = partial(custom.expand, name)
        return await asyncio.to_thread(attach_changes, conversation, kind, arguments, expand)
    if text := custom.expand(name, arguments):
        return CommandReply(follow_up="send", argument=text)
    raise make_unknown_error(name, table, custom)
