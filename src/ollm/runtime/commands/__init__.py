"""Slash commands: run by the conversation, so that they work near and far."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ollm.domain.errors import BusyError, UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import CommandTable, SlashCommand

if TYPE_CHECKING:
    from ollm.runtime.conversation import LocalConversation


def build_command_table() -> CommandTable:
    """All commands there are."""
    from ollm.runtime.commands import context, mcp, session, settings, work

    table = CommandTable()
    for module in (context, mcp, session, settings, work):
        module.add_to(table)
    return table


async def run_command(conversation: LocalConversation, name: str, arguments: str) -> CommandReply:
    """Run `/name arguments`: one of ours, or a file of the workspace's `.ollm/commands`."""
    table = build_command_table()
    if found := table.get(name):
        refuse_during_turn(conversation, found)
        return await found.run(conversation, arguments)
    if text := conversation.parts.late.custom_commands.expand(name, arguments):
        return CommandReply(follow_up="send", argument=text)
    names = [*(command.name for command in table.list_all()), *conversation.parts.late.custom_commands.list_names()]
    near = get_close_matches(name, names, n=1)
    hint = f"Did you mean /{near[0]}?" if near else "/help lists all commands."
    raise UsageError(f"There is no command /{name}.", action=hint)


def refuse_during_turn(conversation: LocalConversation, command: SlashCommand) -> None:
    if conversation.busy and not command.during_turn:
        raise BusyError(f"/{command.name} waits until the model is done.", action="Esc stops it.")
