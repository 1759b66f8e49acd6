"""The lazy command group: a family's module is imported when that family is called, not before."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from ollm import __version__
from ollm.cli.command_table import COMMAND_TARGETS
from ollm.domain.errors import ExitCode, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUMMARIES: dict[str, str] = {
    "chat": "Talk to a model (what `ollm` alone does).",
    "sessions": "List, view, search, export and delete conversations.",
    "snapshots": "List, make and restore points to go back to.",
    "context": "Show what the model would be sent.",
    "files": "List the files as the agent sees them.",
    "tools": "List the tools, or run one by hand.",
    "policy": "Show, check and revoke what tools may do.",
    "env": "Show which variables a tool would get.",
    "redact": "Print a text with its secrets taken out.",
    "config": "Show, check and change the settings.",
    "trust": "Say which workspaces' own settings may be used.",
    "models": "List, get and remove models.",
    "doctor": "Say what is set up, and how to better it.",
    "daemon": "Run the server that holds sessions open.",
    "extensions": "Manage extensions.",
    "mcp": "Manage MCP servers.",
    "completion": "Print a shell's completion script.",
}

EPILOG = """`ollm [OPTIONS]` is `ollm chat [OPTIONS]`; `ollm -p TEXT` answers once, without a screen; `ollm chat --help`
lists their options. --debug with any command prints the log and the whole error to stderr."""


class LazyGroup(click.Group):
    """Knows the names of all families, imports one at a time; options without a family belong to `chat`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_TARGETS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMAND_TARGETS:
            return None
        module, _, attribute = COMMAND_TARGETS[cmd_name].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        own = bool(args) and args[0] in ("--help", "-h", "--version", "-V")
        completing = ctx.resilient_parsing and not args
        if not own and not completing and (not args or args[0].startswith("-")):
            args = ["chat", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMAND_TARGETS:
            ctx.fail(_describe_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            chat = self.get_command(ctx, "chat")
            assert chat is not None
            return chat.shell_complete(click.Context(chat, ctx, "chat"), incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=SUMMARIES[name]) for name in COMMAND_TARGETS if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in COMMAND_TARGETS])


def _describe_unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMAND_TARGETS, n=1)
    hint = f"did you mean {near[0]}?" if near else "`ollm --help` lists the commands, `ollm -p TEXT` asks the model."
    return f"there is no command {name!r}; {hint}"


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(__version__, "-V", "--version", message="ollm %(version)s")
def command() -> None:
    """A terminal coding agent for the models you host yourself."""


def run_command_line(words: list[str]) -> int:
    """Run a command line; the exit code. What click has to say against it is a wrong usage like any other."""
    try:
        result = command.main(args=words, prog_name="ollm", standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        if context is not None:
            print(context.get_usage(), file=sys.stderr)
        action = f"`{context.command_path} --help` says more." if context is not None else ""
        raise UsageError(error.format_message(), action=action) from error
    except click.Abort as error:
        return ExitCode.FAILED if isinstance(error.__cause__, EOFError) else ExitCode.INTERRUPTED
    return result if isinstance(result, int) else ExitCode.DONE
