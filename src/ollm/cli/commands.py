"""The `ollm` command: the table of commands, each imported on use, and command line errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ollm import __version__
from ollm.domain.errors import ExitCode, UsageError
from ollm.domain.text import format_suggestion

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, tuple[str, ...]] = {
    "chat": ("ollm.cli.chat:chat", "Chat with a model (the default command)."),
    "sessions": ("ollm.cli.sessions:sessions", "List, view, search, export and delete sessions.", "list"),
    "snapshots": ("ollm.cli.snapshots:snapshots", "List, create and restore context snapshots.", "list"),
    "context": ("ollm.cli.context:context", "Show what is sent to the model.", "show"),
    "files": ("ollm.cli.files:files", "List the files the agent can see."),
    "tools": ("ollm.cli.tools:tools", "List the tools, or run one.", "list"),
    "skills": ("ollm.cli.tools:skills", "List the skills the agent can read.", "list"),
    "policy": ("ollm.cli.policy:policy", "Show, check and revoke permissions.", "show"),
    "env": ("ollm.cli.environment:env", "Show which environment variables tools get.", "check"),
    "redact": ("ollm.cli.environment:redact", "Redact secrets from text."),
    "config": ("ollm.cli.config:config", "Show, check and change settings.", "show"),
    "trust": ("ollm.cli.trust:trust", "Trust or untrust project settings."),
    "worktree": ("ollm.cli.worktree:worktree", "List, merge and drop git worktrees of sessions.", "list"),
    "compare": ("ollm.cli.compare:compare", "Compare models by tasks of your own.", "list"),
    "models": ("ollm.cli.models:models", "List, download and remove models.", "list"),
    "doctor": ("ollm.cli.doctor:doctor", "Check your setup and suggest fixes."),
    "daemon": ("ollm.cli.daemon:daemon", "Manage the background server.", "status"),
    "acp": ("ollm.cli.acp:acp", "Serve an editor (Zed, JetBrains, Neovim, Emacs)."),
    "archive": ("ollm.cli.archive:archive", "Share sessions between machines (PostgreSQL).", "status"),
    "web": ("ollm.cli.web:web", "Open your sessions in a browser."),
    "extensions": ("ollm.cli.extensions:extensions", "Manage extensions.", "list"),
    "mcp": ("ollm.cli.mcp:mcp", "Manage MCP servers.", "list"),
    "hooks": ("ollm.cli.hooks:hooks", "List hooks, and import those of Claude Code.", "list"),
    "completion": ("ollm.cli.completion:completion", "Print a shell completion script."),
}

ALIASES = {"resume": ["chat", "--resume"], "exec": ["chat", "--prompt"]}
"""Commands people know from other agents."""

OTHER_OPTIONS = {
    "--yolo": "--yes",
    "--dangerously-skip-permissions": "--yes",
    "--full-auto": "--approval accept-edits",
    "--print": "-p",
    "--cwd": "--workspace",
    "--cd": "--workspace",
    "--output-format": "-o",
    "--context-window": "`ollm config set provider.contextWindow TOKENS`",
}
"""Options of other agents, and what they are called here."""

OTHER_COMMANDS = {
    "login": "there is no login: name your server with `ollm config set provider.baseUrl URL`, its key with\
 provider.apiKeyEnv.",
    "update": "ollm does not update itself: use `uv tool upgrade ollm`, `pipx upgrade ollm`, or in a clone `git pull`\
 and `make install`.",
}
"""Commands of other agents, and what to do here."""

EPILOG = """`ollm` opens the chat, `ollm fix the bug` opens it with that message, `ollm -c` continues the last chat,
`ollm -p TEXT` answers once and exits; `ollm chat --help` lists all options.
--debug with any command prints the log and full errors to stderr."""

CommandTable = Mapping[str, tuple[str, ...]]  # Each name has `module:attribute`, help, and a group's default command.


def complete_late(name: str) -> Callable[..., Any]:
    """Return a completer that is imported on first use."""

    def complete(*given: Any) -> Any:
        return getattr(import_module("ollm.cli.completion"), name)(*given)

    return complete


class LazyGroup(click.Group):
    """A group whose commands are in a table."""

    def __init__(self, *arguments: Any, table: CommandTable, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text, *_default) in self.table.items()])


class RootGroup(LazyGroup):
    """The root command. Options without a command go to `chat`; a bare group runs its default subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if (
            args
            and not ctx.resilient_parsing
            and all(word.startswith("-") and word not in ("-h", "--help") for word in args[1:])
        ):
            args = [args[0], *COMMANDS.get(args[0], ())[2:], *args[1:]]
        own = bool(args) and args[0] in ("--help", "-h", "--version", "-V")
        completing = ctx.resilient_parsing and not args
        if not own and not completing and (not args or args[0].startswith("-") or is_message(args)):
            ctx.meta["bare"] = True
            args = ["chat", *args]
        args = [*ALIASES.get(args[0], args[:1]), *args[1:]] if args else args
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            otherwise = "to ask the model, use `ollm -p TEXT`."
            ctx.fail(OTHER_COMMANDS.get(args[0]) or _describe_unknown(args[0], COMMANDS, otherwise))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            chat = self.get_command(ctx, "chat")
            assert chat is not None
            return chat.shell_complete(click.Context(chat, ctx, "chat"), incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=row[1]) for name, row in COMMANDS.items() if name.startswith(incomplete)]


def is_message(words: list[str]) -> bool:
    """Return True for `ollm fix the test`: several words, the first of which is no command."""
    if words[0] in COMMANDS or words[0] in ALIASES:
        return False
    return " " in words[0].strip() or not all(word.startswith("-") for word in words[1:])


def _describe_unknown(name: str, known: Iterable[str], otherwise: str) -> str:
    return f"unknown command {name!r}; {format_suggestion(name, known, otherwise)}"


@click.command(
    cls=RootGroup,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, "-V", "--version", message="ollm %(version)s")
def command() -> None:
    """A terminal coding agent for the models you host yourself."""


def run_command_line(words: list[str]) -> int:
    """Run a command line and return the exit code. Click's errors are raised as UsageError."""
    try:
        result = command.main(args=words, prog_name="ollm", standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        if context is not None:
            print(context.get_usage(), file=sys.stderr)
        action = f"See `{context.command_path} --help`." if context is not None else ""
        raise UsageError(_format_click_error(error), action=action) from error
    except click.Abort as error:
        return ExitCode.FAILED if isinstance(error.__cause__, EOFError) else ExitCode.INTERRUPTED
    return result if isinstance(result, int) else ExitCode.DONE


def _format_click_error(error: click.ClickException) -> str:
    """Format a click error. Harmful options are never suggested for a mistyped one."""
    context = getattr(error, "ctx", None)
    found = re.match(r"No such command '(.+?)'\.", error.format_message())
    if found and context and isinstance(context.command, click.Group):
        known = context.command.list_commands(context)
        return _describe_unknown(found[1], known, f"available: {', '.join(known)}.")
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    if name := OTHER_OPTIONS.get(error.option_name):
        return f"unknown option {error.option_name}; here it is {name}."
    near = [name for name in error.possibilities or () if name != "--yes"]
    return f"unknown option {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else ".")
