"""Slash commands: name, help line, function, and the parts of a conversation they may use."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from ollm.domain.errors import UsageError
from ollm.runtime.base import CommandReply
from ollm.runtime.changes import Changeable

if TYPE_CHECKING:
    from ollm.domain.lazy import Lazy
    from ollm.domain.session import AgentListing, ChatSession
    from ollm.extensions.mcp.servers import McpServers
    from ollm.policy.engine import PolicyEngine
    from ollm.runtime.prompt.compaction import Compactor
    from ollm.runtime.prompt.prompt import Prompt
    from ollm.runtime.state import Plan
    from ollm.services.edit_ledger import EditLedger
    from ollm.services.file_checkpoints import FileCheckpoints
    from ollm.store.notes import NoteStore
    from ollm.tools.framework.base import ToolContext
    from ollm.tools.recall import Archive

RunSlashCommand = Callable[["CommandNeeds", str], Awaitable[CommandReply]]


class SlashCommand(msgspec.Struct, frozen=True, kw_only=True):
    """`usage` is what follows the name; `during_turn` says whether it may run while the model works; `more` is told
    when somebody asks for help about it."""

    name: str
    help: str
    run: RunSlashCommand
    usage: str
    more: str
    during_turn: bool


class CommandTable:
    """Commands by name, filled by the modules of this package."""

    def __init__(self) -> None:
        self._commands: dict[str, SlashCommand] = {}

    def register(
        self,
        name: str,
        help: str,  # noqa: A002
        *,
        usage: str = "",
        more: str = "",
        during_turn: bool = False,
    ) -> Callable[[RunSlashCommand], None]:
        """To be called with the function that becomes `/name`."""

        def add(run: RunSlashCommand) -> None:
            self._commands[name] = SlashCommand(
                name=name, help=help, run=run, usage=usage, more=more, during_turn=during_turn
            )

        return add

    def get(self, name: str) -> SlashCommand | None:
        return self._commands.get(name)

    def list_all(self) -> list[SlashCommand]:
        return [self._commands[name] for name in sorted(self._commands)]


def split_words(arguments: str, at_most: int) -> list[str]:
    """The first words, the last one holding all that follows."""
    return arguments.split(None, at_most - 1) if arguments.strip() else []


def split_subcommand(arguments: str) -> tuple[str, str]:
    """The first word and the rest."""
    found = split_words(arguments, 2)
    return (found[0] if found else "", found[1] if len(found) > 1 else "")


def parse_number(word: str) -> int | None:
    """A whole number of at most nine digits; None for any other word."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None


def make_usage_error(name: str, usage: str) -> UsageError:
    return UsageError(f"Usage: /{name} {usage}".rstrip() + ".", action="See /help for all commands.")


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


class WorkspaceSessions(Protocol):
    """The sessions of the workspace."""

    def list_sessions(self) -> list[ChatSession]: ...


class ContextNeeds(Changeable, Protocol):
    """For commands about what the model sees."""

    @property
    def compactor(self) -> Compactor: ...

    @property
    def archive(self) -> Lazy[Archive]: ...


class SessionNeeds(Changeable, Protocol):
    """For commands about this session and others."""

    @property
    def workspace(self) -> Path: ...

    @property
    def workspace_sessions(self) -> Lazy[WorkspaceSessions]: ...

    @property
    def export(self) -> Callable[[str, Path], None]: ...


class RewindNeeds(Changeable, Protocol):
    """For commands that go back."""

    @property
    def checkpoints(self) -> Lazy[FileCheckpoints]: ...

    @property
    def checkpoints_enabled(self) -> bool: ...

    @property
    def files(self) -> Lazy[ToolContext]: ...


class AgentSource(Protocol):
    """Knows the agents people defined."""

    def list_agents(self) -> list[AgentListing]: ...


class SettingsNeeds(Changeable, Protocol):
    """For commands that change how the agent works."""

    @property
    def mcp(self) -> McpServers | None: ...

    @property
    def trust(self) -> Callable[[bool], str]: ...

    @property
    def command_directories(self) -> tuple[Path, ...]: ...

    @property
    def skill_directories(self) -> tuple[Path, ...]: ...

    @property
    def tasks(self) -> Lazy[AgentSource] | None: ...

    @property
    def workspace(self) -> Path: ...


class WorkNeeds(RewindNeeds, Protocol):
    """For commands about goals, plan, todos, memory and edits."""

    @property
    def prompt(self) -> Prompt: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def notes(self) -> Lazy[NoteStore]: ...

    @property
    def edits(self) -> Lazy[EditLedger]: ...

    @property
    def policy(self) -> Lazy[PolicyEngine]: ...


class McpNeeds(Protocol):
    """For `/mcp`."""

    @property
    def prompt(self) -> Prompt: ...

    @property
    def mcp(self) -> McpServers | None: ...


class CommandNeeds(ContextNeeds, SessionNeeds, SettingsNeeds, WorkNeeds, McpNeeds, Protocol):
    """For all of them."""
