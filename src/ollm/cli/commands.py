"""The `ollm` command: what a line without a command means, and what is said against a wrong one."""

from __future__ import annotations

import re
import sys

import click

from ollm import __version__
from ollm.cli.command_table import COMMANDS, DEFAULT_SUBCOMMANDS
from ollm.cli.lazy_group import LazyGroup
from ollm.domain.errors import ExitCode, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EPILOG = """`ollm` opens the chat, `ollm "fix the bug"` opens it with that message, `ollm -c` continues the last chat,
`ollm -p TEXT` answers once and exits; `ollm chat --help` lists all options.
--debug with any command prints the log and full errors to stderr."""


_NO_COMMAND = re.compile(r"No such command '(.+?)'\.")


class RootGroup(LazyGroup):
    """Options without a command belong to `chat`; a group called alone does what it does most often."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if args and all(word.startswith("-") and word not in ("-h", "--help") for word in args[1:]):
            args = [*args[:1], *([DEFAULT_SUBCOMMANDS[args[0]]] if args[0] in DEFAULT_SUBCOMMANDS else []), *args[1:]]
        own = bool(args) and args[0] in ("--help", "-h", "--version", "-V")
        completing = ctx.resilient_parsing and not args
        if not own and not completing and (not args or args[0].startswith("-") or " " in args[0].strip()):
            args = ["chat", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            ctx.fail(_describe_unknown(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            chat = self.get_command(ctx, "chat")
            assert chat is not None
            return chat.shell_complete(click.Context(chat, ctx, "chat"), incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]


def _describe_unknown(name: str) -> str:
    from ollm.domain.suggest import format_suggestion

    hint = format_suggestion(name, COMMANDS, "to ask the model, use `ollm -p TEXT`.")
    return f"unknown command {name!r}; {hint}"


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
    """Run a command line; the exit code. What click has to say against it is a wrong usage like any other."""
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


def _describe_unknown_subcommand(name: str, known: list[str]) -> str:
    from ollm.domain.suggest import format_suggestion

    hint = format_suggestion(name, known, f"available: {', '.join(known)}.")
    return f"unknown command {name!r}; {hint}"


def _format_click_error(error: click.ClickException) -> str:
    """As click says it, but an option is only ever taken for one that does no harm."""
    context = getattr(error, "ctx", None)
    found = _NO_COMMAND.match(error.format_message())
    if found and context and isinstance(context.command, click.Group):
        return _describe_unknown_subcommand(found[1], context.command.list_commands(context))
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    near = [name for name in error.possibilities or () if name != "--yes"]
    return f"unknown option {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else ".")
