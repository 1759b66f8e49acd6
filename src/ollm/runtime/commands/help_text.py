"""Text of `/help` and the custom commands of `.ollm/commands`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import UsageError
from ollm.domain.text import split_front_matter, suggest_names
from ollm.runtime.base import CommandReply
from ollm.runtime.commands.base import SlashCommand, render_table
from ollm.system.atomic import read_small_file
from ollm.system.folders import find_named_files

if TYPE_CHECKING:
    from ollm.extensions.mcp.servers import McpServers

MAX_COMMAND_CHARS = 100_000
MAX_DESCRIPTION_CHARS = 200
# a word in quotes is one; an apostrophe inside a word is a character
_WORD = r"""(?<!\S)"([^"]*)"(?!\S)|(?<!\S)'([^']*)'(?!\S)|(\S+)"""
_PLACEHOLDER = r"\$(ARGUMENTS|[1-9])"


class CustomCommands:
    """The custom commands of the workspace, if it is trusted, and of the home. The workspace takes precedence."""

    def __init__(self, directories: tuple[Path, ...]) -> None:
        self.files = find_named_files(directories)

    def describe(self, name: str) -> str:
        """Return the `description` from the front matter, or else the first line."""
        text = self._read(name) or ""
        fields, body = split_front_matter(text)
        first = next((line.strip("# \t") for line in body.splitlines() if line.strip()), "")
        return (fields.get("description") or first)[:MAX_DESCRIPTION_CHARS]

    def read_field(self, name: str, field: str) -> str:
        """Return a field of the front matter, or "" without one."""
        return split_front_matter(self._read(name) or "")[0].get(field, "")

    def expand(self, name: str, arguments: str) -> str | None:
        """Return the text to send: `$ARGUMENTS` is everything after the name, `$1` to `$9` its words (quotes group).

        Return None if there is no such command.
        """
        text = self._read(name)
        return None if text is None else _fill_arguments(split_front_matter(text)[1], arguments)

    def _read(self, name: str) -> str | None:
        file = self.files.get(name)
        return read_small_file(file).decode("utf-8", "replace")[:MAX_COMMAND_CHARS] if file else None


def _fill_arguments(text: str, arguments: str) -> str:
    given = ["".join(word) for word in re.findall(_WORD, arguments)]

    def fill(match: re.Match[str]) -> str:
        which = match[1]
        if which == "ARGUMENTS":
            return arguments
        return given[int(which) - 1] if int(which) <= len(given) else ""

    filled, places = re.subn(_PLACEHOLDER, fill, text)
    return filled if places or not arguments else f"{text.rstrip()}\n\n{arguments}"


KEY_HELP = (
    ("Enter", "send; queued while the model is working"),
    ("Alt-Enter, Ctrl-J, \\ at the end", "a new line"),
    ("@", "attach a file, a directory or an image"),
    ("//", "a message that starts with a slash"),
    ("!command", "run a shell command; the model sees its output with your next message, Alt-A drops it"),
    ("Alt-R", "run the command that the last answer showed, as /run does"),
    ("#note", "remember a note for this workspace"),
    ("?", "show these keys"),
    ("Up, Down, Ctrl-R", "take a queued message back; input history of all sessions"),
    ("Ctrl-G", "edit in your editor"),
    ("Esc", "stop the model; twice on an empty line: rewind"),
    ("Ctrl-C", "stop the model or clear the line; twice: quit"),
    ("Ctrl-O", "show the calls of the last turn in full; again collapses"),
    ("Shift-Tab", "ask before edits, accept edits, plan"),
    ("Ctrl-Z", "suspend to the shell"),
    ("Ctrl-D", "quit; the session is saved"),
)


def render_help(directories: tuple[Path, ...], arguments: str, mcp: McpServers | None = None) -> CommandReply:
    """`directories` are where the person's own commands are."""
    from ollm.runtime.commands import build_command_table

    name = arguments.strip().removeprefix("/")
    known, own = build_command_table(), CustomCommands(directories)
    keys = render_table(("key", "in the chat"), KEY_HELP)
    if name == "keys":
        return CommandReply(text=keys)
    if name:
        return CommandReply(text=describe_command(name, known, own))
    rows = [(f"/{command.name} {command.usage}".strip(), command.help) for command in known.values()]
    if mcp is not None:
        from ollm.runtime.commands.mcp import describe_prompts

        rows += describe_prompts(mcp)
    rows += [
        (f"/{one} {own.read_field(one, 'usage')}".rstrip(), own.describe(one) or shorten_home(file))
        for one, file in own.files.items()
    ]
    text = f"{render_table(('command', 'description'), rows)}\n\n{keys}"
    return CommandReply(text=text, data=[" ".join(row) for row in rows])


def describe_command(name: str, known: dict[str, SlashCommand], own: CustomCommands) -> str:
    """One command in full; the file of a person's own."""
    found = known.get(name)
    if found is None and (file := own.files.get(name)):
        usage = own.read_field(name, "usage") or "[TEXT]"
        return f"`/{name} {usage}` sends the text of `{shorten_home(file)}`.\n\n{own.describe(name)}"
    if found is None:
        raise make_unknown_error(name, known, own)
    return f"`/{f'{found.name} {found.usage}'.strip()}`\n\n{found.help}\n\n{found.more}".strip()


def make_unknown_error(name: str, known: Iterable[str], own: CustomCommands) -> UsageError:
    near = suggest_names(name, [*known, *own.files])
    hint = f"Did you mean /{near[0]}?" if near else "See /help for all commands."
    return UsageError(f"Unknown command /{name}.", action=hint)


def shorten_home(path: Path | str | None) -> str:
    """Return a path as a person would write it."""
    home, name = str(Path.home()), str(path or "")
    return f"~{name[len(home) :]}" if name == home or name.startswith(f"{home}/") else name
