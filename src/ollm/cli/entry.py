"""Run the command and turn errors into one clear line and the right exit code, never a traceback (S10.6)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from ollm.domain.errors import ExitCode, OllmError

_OUTPUT_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(arguments: list[str]) -> int:
    debug, arguments = _extract_debug_flag(arguments)
    _tolerate_odd_text()
    stop = _log_to_stderr() if debug else None
    try:
        code = _run_and_report(arguments)
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - the outermost edge: what was not foreseen still ends in one line
        if isinstance(error, OSError) and _is_of_output(error):
            return _report_output_error(error)
        _log_error(error)
        _print_error(*_describe_failure(error, debug))
        return ExitCode.FAILED
    finally:
        if stop is not None:
            stop()
    return code


def _is_of_output(error: OSError) -> bool:
    """Return True for a failed write to stdout. An error of a store names its file."""
    return isinstance(error, BrokenPipeError) or (error.filename is None and error.errno in _OUTPUT_ERRNOS)


def _report_output_error(error: OSError) -> int:
    """Report a failed write to stdout, except for a closed pipe, and redirect it so that the final flush works."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        _print_error(f"Cannot write the output: {error.strerror}.", "Check the file or disk it is written to.")
    return ExitCode.FAILED


def _run_and_report(arguments: list[str]) -> int:
    try:
        return _run_command(arguments)
    except KeyboardInterrupt:
        _print_error_document(arguments, OllmError("Interrupted."), ExitCode.INTERRUPTED)
        return ExitCode.INTERRUPTED
    except OllmError as error:
        _log_error(error)
        _print_error(error.message, error.action)
        _print_error_document(arguments, error, error.exit_code)
        return error.exit_code


REASONS = {3: "no-server", 4: "model-error", 5: "denied", 6: "loop", 124: "timeout", 130: "cancelled"}


def _print_error_document(arguments: list[str], error: OllmError, code: int) -> None:
    output = _find_json_output(arguments)
    if not output:
        return
    import json

    from ollm.app.process import redact_error
    from ollm.system.terminal_text import escape_json

    info = {
        "type": ExitCode(code).name.lower(),
        "message": redact_error(error.message),
        "action": redact_error(error.action),
    }
    document = {"sessionId": error.session_id, "reason": REASONS.get(code, "error"), "error": info, "exitCode": code}
    full = {"text": "", "toolCalls": [], "usage": {}} if output == "json" else {"type": "error"}
    print(escape_json(json.dumps({**full, **document}, ensure_ascii=False)))


def _find_json_output(arguments: list[str]) -> str:
    if not arguments or not (arguments[0].startswith("-") or arguments[0] in ("chat", "exec")):
        return ""
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        asked = after if word in ("-o", "--output") else word.removeprefix("-o").removeprefix("--output=")
        if asked in ("json", "stream-json") and word.startswith("-"):
            return asked
    return ""


def _run_command(arguments: list[str]) -> int:
    """Run the command. Plain `ollm files` skips the parser, so that programs get the list sooner."""
    if arguments == ["files"]:
        from ollm.cli.file_list import show_files

        show_files()
        return ExitCode.DONE
    from ollm.cli.commands import run_command_line

    return run_command_line(arguments)


def _print_error(message: str, action: str) -> None:
    from ollm.app.process import redact_error
    from ollm.cli.options import wrap_for_terminal
    from ollm.system.terminal_text import clean_lines

    print(wrap_for_terminal(f"ollm: {clean_lines(redact_error(message))}"), file=sys.stderr)
    if action:
        lines = clean_lines(redact_error(action)).split("\n")
        print("\n".join(f"  {line}" for line in lines), file=sys.stderr)


def _describe_failure(error: Exception, debug: bool) -> tuple[str, str]:
    """Describe an error that no command foresaw, and what to do about it."""
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "The system allows no more processes or threads.", "End other programs, or raise `ulimit -u`."
    if isinstance(error, OSError) and error.errno == errno.ENOENT and error.filename is None:
        return "The current directory no longer exists.", "Change to one that does, and run ollm again."
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        name = os.fsdecode(error.filename)
        action = _describe_traceback(error) if debug else _explain_refused_file(name)
        return f"{name} cannot be used: {error.strerror}.", action
    action = _describe_traceback(error) if debug else "Run again with --debug for details."
    return f"internal error: {type(error).__name__}: {error}", action


def _explain_refused_file(name: str) -> str:
    from ollm.config.environment import copy_environment, find_home

    action = "Check its permissions and the room on the disk."
    at_home = name.startswith(str(find_home(copy_environment()).root))
    return f"{action} Or set OLLM_HOME to another directory." if at_home else action


def _describe_traceback(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def _log_error(error: Exception) -> None:
    if "ollm.system.logs" not in sys.modules:
        return
    import logging

    foreseen = isinstance(error, OllmError)
    facts = {"operation": "run", "errorType": type(error).__name__, "action": getattr(error, "action", None)}
    logging.getLogger("ollm.cli").error("%s", error, exc_info=None if foreseen else error, extra=facts)


def _log_to_stderr() -> Callable[[], None] | None:
    from ollm.app.process import redact_error
    from ollm.config.environment import copy_environment, find_home
    from ollm.system.logs import start_logging

    return start_logging(find_home(copy_environment()).log, "DEBUG", redact_error, debug=True)


def _extract_debug_flag(arguments: list[str]) -> tuple[bool, list[str]]:
    """Remove --debug, which may come anywhere before `--`, and return whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [item for item in arguments[:end] if item != "--debug"]
    return len(kept) < end, kept + arguments[end:]


def _tolerate_odd_text() -> None:
    """Write undecodable file names as their bytes, or as escapes if the output is not UTF-8. A closed stdout fails
    when it is written to; a closed stderr does not."""
    for name, flags in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape" if stream.encoding.lower() == "utf-8" else "backslashreplace")
