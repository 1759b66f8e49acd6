"""Where the command ends: errors become one clear line and the right exit code, never a traceback (S10.6)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from ollm.domain.errors import Exit, OllmError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: list[str]) -> int:
    """Run the command line; the exit code."""
    debug, arguments = _without_debug(arguments)
    _tolerate_odd_text()
    stop = _log_to_stderr() if debug else None
    try:
        code = _ended(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
        return Exit.FAILED
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:  # stores name the file, standard output has none
            return _unforeseen(error, debug)
        _silence()
        _say(f"The output cannot be written: {error.strerror}.", "Look at the file or disk it goes to.")
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the outermost edge: what was not foreseen still ends in one line
        return _unforeseen(error, debug)
    finally:
        if stop is not None:
            stop()
    return code


def _ended(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OllmError as error:
        _log(error)
        _say(error.message, error.action)
        return error.exit_code


def _run(arguments: list[str]) -> int:
    """The everyday lines do without click, which takes as long to import as half of all the rest."""
    if "-p" in arguments or "--prompt" in arguments:
        from ollm.cli.chat_options import plain_line

        if options := plain_line(arguments):
            from ollm.cli.chat_command import talk

            return talk(options)
    if arguments[:2] == ["sessions", "list"]:
        from ollm.cli.sessions.table import PLAIN_LINES, show_sessions

        if (rest := tuple(arguments[2:])) in PLAIN_LINES:
            show_sessions(as_json=PLAIN_LINES[rest])
            return Exit.DONE
    from ollm.cli.commands import run_line

    return run_line(arguments)


def _say(message: str, action: str) -> None:
    from ollm.app import redact_error

    print(f"ollm: {redact_error(message)}", file=sys.stderr)
    if action:
        print(f"  {redact_error(action)}", file=sys.stderr)


def _unforeseen(error: Exception, debug: bool) -> int:
    _log(error)
    _say(f"something went wrong inside: {type(error).__name__}: {error}", _where(error, debug))
    return Exit.FAILED


def _where(error: Exception, debug: bool) -> str:
    if not debug:
        return "Run it again with --debug to see where."
    import traceback

    return "".join(traceback.format_exception(error))


def _log(error: Exception) -> None:
    """Keep the error in the log, where a command has set one up."""
    if "ollm.system.logs" not in sys.modules:
        return
    import logging

    foreseen = isinstance(error, OllmError)
    facts = {"operation": "run", "errorType": type(error).__name__, "action": getattr(error, "action", None)}
    logging.getLogger("ollm.cli").error("%s", error, exc_info=None if foreseen else error, extra=facts)


def _log_to_stderr() -> Callable[[], None] | None:
    """What --debug adds: everything the log gets is printed too."""
    from ollm.app import redact_error
    from ollm.config.environment import home, process_environment
    from ollm.system.logs import start_logging

    return start_logging(home(process_environment()).log, "DEBUG", redact_error, debug=True)


def _without_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """--debug stands anywhere before `--` and belongs to no command in particular."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [item for item in arguments[:end] if item != "--debug"]
    return len(kept) < end, kept + arguments[end:]


def _tolerate_odd_text() -> None:
    """File names that are not text are written as the bytes they are; a poor terminal gets escapes, not an error, and
    what is said where nobody listens goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape" if stream.encoding.lower() == "utf-8" else "backslashreplace")


def _silence() -> None:
    """The reader went away: let the interpreter's own flush at the end go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
