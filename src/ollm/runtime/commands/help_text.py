"""What `/help` says: every command and key, or more about one command. It needs no conversation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import UsageError
from ollm.domain.suggest import suggest_names
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import CommandTable, render_table
from ollm.runtime.commands.custom import CustomCommands

if TYPE_CHECKING:
    from ollm.extensions.mcp.servers import McpServers

KEY_HELP = (
    ("Enter", "send; queued while the model is working"),
    ("Alt-Enter, Ctrl-J, \\ at the end", "a new line"),
    ("@", "attach a file, a directory or an image"),
    ("//", "a message that starts with a slash"),
    ("!command", "run a shell command; Alt-A attaches its output to the next message"),
    ("Up, Down, Ctrl-R", "take a queued message back; input history of all sessions"),
    ("Ctrl-G", "edit in your editor"),
    ("Esc", "stop the model; twice on an empty line: rewind"),
    ("Ctrl-C", "stop the model or clear the line; twice: quit"),
    ("Ctrl-O", "show the calls of the last turn in full and choose an earlier one; again collapses"),
    ("Shift-Tab", "next approval level: ask, accept-edits, read-only"),
    ("Ctrl-Z", "suspend to the shell"),
    ("Ctrl-D", "quit; the session is saved"),
)


def render_help(directories: tuple[Path, ...], arguments: str, mcp: McpServers | None = None) -> CommandReply:
    """`directories` are where the person's own commands are."""
    from ollm.runtime.commands import build_command_table

    name = arguments.strip().removeprefix("/")
    known, files = build_command_table(), CustomCommands(directories)
    if name:
        return CommandReply(text=describe_command(name, known, files))
    rows = [(f"/{command.name} {command.usage}".strip(), command.help) for command in known.list_all()]
    if mcp is not None:
        from ollm.runtime.commands.mcp import describe_prompts

        rows += describe_prompts(mcp)
    rows += [(f"/{own}", files.describe(own) or shorten_home(files.find(own))) for own in files.list_names()]
    text = f"{render_table(('command', 'description'), rows)}\n\n{render_table(('key', 'in the chat'), KEY_HELP)}"
    return CommandReply(text=text, data=[" ".join(row) for row in rows])


def describe_command(name: str, known: CommandTable, files: CustomCommands) -> str:
    """One command in full; the file of a person's own."""
    found = known.get(name)
    if found is None and (file := files.find(name)):
        return f"`/{name} [TEXT]` sends the text of `{shorten_home(file)}`.\n\n{files.describe(name)}"
    if found is None:
        near = suggest_names(name, [*(command.name for command in known.list_all()), *files.list_names()])
        hint = f"Did you mean /{near[0]}?" if near else "See /help for all commands."
        raise UsageError(f"Unknown command /{name}.", action=hint)
    return f"`/{f'{found.name} {found.usage}'.strip()}`\n\n{found.help}\n\n{found.more}".strip()


def shorten_home(file: Path | None) -> str:
    """A path as a person would write it."""
    home = Path.home()
    return f"~/{file.relative_to(home)}" if file and file.is_relative_to(home) else str(file or "")
