"""Where the command ends: errors become one clear line and the right exit code, never a traceback (S10.6)."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from ollm.cli.group import command
from ollm.domain.errors import Exit, OllmError


def main(arguments: list[str]) -> int:
    """Run the command line; the exit code."""
    debug, arguments = _without_debug(arguments)
    _tolerate_odd_text()
    try:
        code = _ended(lambda: command.main(args=arguments, prog_name="ollm", standalone_mode=False, obj=debug))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
        return Exit.FAILED
    except Exception as error:  # the outermost edge: whatever was not foreseen still ends in one line
        if debug:
            raise
        _say(f"something went wrong inside: {type(error).__name__}: {error}", "Run it again with --debug to see where.")
        return Exit.FAILED
    return code


def _ended(run: Callable[[], object]) -> int:
    try:
        result = run()
    except click.ClickException as error:
        return _usage(error)
    except click.Abort as error:
        return Exit.FAILED if isinstance(error.__cause__, EOFError) else Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OllmError as error:
        _say(error.message, error.action)
        return error.exit_code
    return result if isinstance(result, int) else Exit.DONE


def _usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    if context is not None:
        print(context.get_usage(), file=sys.stderr)
    _say(error.format_message(), f"`{context.command_path} --help` says more." if context is not None else "")
    return error.exit_code


def _say(message: str, action: str) -> None:
    from ollm.app import redact_error

    print(f"ollm: {redact_error(message)}", file=sys.stderr)
    if action:
        print(f"  {action}", file=sys.stderr)


def _without_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """--debug stands anywhere before `--` and belongs to no command in particular."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [item for item in arguments[:end] if item != "--debug"]
    return len(kept) < end, kept + arguments[end:]


def _tolerate_odd_text() -> None:
    """File names that are not text are written as the bytes they are; a poor terminal gets escapes, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape" if stream.encoding.lower() == "utf-8" else "backslashreplace")


def _silence() -> None:
    """The reader went away: let the interpreter's own flush at the end go nowhere."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
