"""Slash commands as data, with shared helpers: command-line words and Markdown replies."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.runtime.base import CommandReply

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts

# commands of `ollm` itself, which a terminal runs as in a shell, and their arguments if none are given
SHELL_COMMANDS = {"config": ("show", "--set"), "doctor": ()}
TERMINAL_COMMANDS = (*SHELL_COMMANDS, "theme", "vim")
RunSlashCommand = Callable[["ConversationParts", str], Awaitable[CommandReply]]


class SlashCommand(msgspec.Struct, frozen=True):
    """A slash command. `usage` follows the name. `during_turn` is True if the command may run while the model works,
    or lists the first words with which it may. `more` is its detailed help text."""

    name: str
    help: str
    run: RunSlashCommand
    usage: str
    more: str
    during_turn: bool | tuple[str, ...]

    def runs_during_turn(self, arguments: str) -> bool:
        allowed = self.during_turn
        return allowed if isinstance(allowed, bool) else split_subcommand(arguments)[0] in allowed


class WrongUsage(Exception):  # noqa: N818 - becomes a UsageError that names the command
    """Invalid arguments for a command: the message is its usage, or the given text."""


def slash_command(
    name: str, *, usage: str = "", more: str = "", during_turn: bool | tuple[str, ...] = False
) -> Callable[[RunSlashCommand], SlashCommand]:
    """Make a function the command `/name`. Its docstring is the help: the first line in the list of commands, and what
    follows when somebody asks about this one."""

    def make(run: RunSlashCommand) -> SlashCommand:
        head, _, rest = cleandoc(run.__doc__ or "").partition("\n\n")
        told = more or re.sub(r"(?<!\n)\n *(?![\n -])|\n {2,}", " ", rest)
        return SlashCommand(name, head, run, usage, told, during_turn)

    return make


def split_subcommand(arguments: str) -> tuple[str, str]:
    """The first word and the rest."""
    word, *rest = arguments.split(None, 1) or [""]
    return word, "".join(rest)


def parse_number(word: str) -> int | None:
    """A whole number of at most nine digits; None for any other word."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None


def fence_text(text: str, language: str = "") -> str:
    """A Markdown block that shows the text exactly as it is."""
    fence = "~" * max([3, *(len(run) + 1 for run in re.findall("~+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


def render_options(about: dict[str, str]) -> str:
    """The words a command takes and what each means, as a Markdown list."""
    return "\n".join(f"- `{word}`: {meaning}" for word, meaning in about.items())


def render_table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(headers) + " |", "|" + " --- |" * len(headers)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def list_in_reply(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], none: str, data: Any) -> CommandReply:
    """Reply with a table of what there is, or say that there is none."""
    return CommandReply(text=render_table(headers, rows) if rows else none, data=msgspec.to_builtins(data))
