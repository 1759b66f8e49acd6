"""Options, questions, tables and JSON output shared by the command families.

`click` is imported when an option is created or a question is asked: plain `ollm files` has nothing to parse.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ollm.domain.errors import OllmError, UsageError
from ollm.system.terminal_text import escape_json, make_printable, wrap_words

if TYPE_CHECKING:
    import click

Command = TypeVar("Command", bound=Callable[..., Any])


def shared_options(*names: str) -> Callable[[Command], Command]:
    """Add parameters that commands share: `session` (for `resolve_session_id`), `workspace` (its path), `within` (that
    path if it was given), `process` (the ProcessScope of the workspace), `yes` (for `confirm_or_fail`), `json`
    (`as_json`), `tasks`, and `since`, `role` and `limit` of a search."""

    def decorate(command: Command) -> Command:
        import click

        from ollm.cli.commands import complete_late

        complete, place = complete_late("complete_session"), "Project directory (default: current directory)."
        when = "Only messages since this time (2026-01-27, 2026-01-27T10:00, 7d, 12h)."
        roles, amount = click.Choice(["user", "assistant", "system", "tool"]), click.IntRange(min=1, max=1000)
        known: dict[str, Callable[[Command], Command]] = {
            "session": click.argument("session", metavar="[ID]", required=False, shell_complete=complete),
            "workspace": click.option("--workspace", metavar="DIR", callback=_resolve_option, help=place),
            "within": click.option("--workspace", "within", metavar="DIR", callback=_resolve_option, help=place),
            "process": click.option("--workspace", "process", metavar="DIR", callback=_resolve_option, help=place),
            "yes": click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
            "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
            "tasks": click.option("--all", "tasks", is_flag=True, help="Include the sessions of tasks."),
            "since": click.option("--since", metavar="TIME", help=when),
            "role": click.option("--role", type=roles, help="Only messages of this role."),
            "limit": click.option("--limit", type=amount, default=20, show_default=True, help="Maximum to show."),
        }
        for name in reversed(names):
            command = known[name](command)
        return command

    return decorate


def _resolve_option(_context: object, parameter: click.Parameter, named: str | None) -> object:
    if parameter.name == "within" and not named:
        return None
    workspace = resolve_workspace(named)
    if parameter.name != "process":
        return workspace
    from ollm.app.process import ProcessScope

    return ProcessScope(workspace=workspace)


def resolve_workspace(named: str | None = None) -> Path:
    """Resolve the real path of the workspace. Raises UsageError unless it is a directory."""
    path = Path(named).expanduser() if named else Path.cwd()
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"Cannot use the workspace {path}: {why}.", action="Choose a directory that exists."
        ) from error
    if not resolved.is_dir():
        raise UsageError(f"the workspace {path} is not a directory.", action="Choose one with --workspace DIR.")
    return resolved


def confirm_or_fail(question: str, yes: bool) -> None:
    """Ask for confirmation, and raise an error without it. Without a terminal only --yes confirms."""
    if yes:
        return
    import click

    if not sys.stdin.isatty():
        click.echo(question, err=True)  # The question may hold text to forget, so it stays out of the logged error.
        raise UsageError("Cannot ask: no terminal.", action="Add --yes to skip the question.")
    if not click.confirm(question, err=True):
        raise OllmError("Cancelled.")


def parse_json(text: str, option: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} is not JSON: {error}.", action="""Write it as '{"path": "a.txt"}'.""") from error


def parse_pairs(given: Iterable[str], mark: str, option: str) -> dict[str, str]:
    found = {text: text.partition(mark) for text in given}
    for text, (name, sign, _) in found.items():
        if not name.strip() or not sign:
            raise UsageError(f"{option} {text} is not NAME{mark}VALUE.")
    return {name.strip(): value for name, _, value in found.values()}


def print_json(value: object) -> None:
    """Print one document to stdout; structs are written with their camelCase names."""
    import json

    import msgspec

    document = msgspec.to_builtins(value)
    try:
        text = json.dumps(document, ensure_ascii=False, indent=2)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2)
    print(escape_json(text))


def print_result(document: object, text: str, *, as_json: bool) -> None:
    print_json(document) if as_json else print(text)


def format_table(headings: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "") -> str:
    """Format a table with columns as wide as needed, or return `empty` if there are no rows and it is set. Control
    characters in cells are made visible."""
    lines = [list(headings), *([make_printable(str(cell)) for cell in row] for row in rows)]
    if empty and len(lines) == 1:
        return empty
    widths = [max(_measure_width(line[column]) for line in lines) for column in range(len(headings))]
    padded = (
        [cell + " " * (width - _measure_width(cell)) for cell, width in zip(line, widths, strict=True)]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _measure_width(text: str) -> int:
    if text.replace("…", ".").isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def make_progress(label: str, unit: str = "") -> Callable[[int, int], None]:
    """Make a bar that appears on stderr after a second if it is a terminal. Bytes are shown in MB."""
    started = time.monotonic()
    shown, scale = False, 1_000_000 if unit == "MB" else 1

    def show(done: int, total: int) -> None:
        nonlocal shown
        if not sys.stderr.isatty() or (not shown and (time.monotonic() - started < 1 or done == total)):
            return
        shown = True
        filled = 30 * done // max(total, 1)
        line = f"{label} [{'#' * filled}{' ' * (30 - filled)}] {done // scale}/{total // scale} {unit}".rstrip()
        print("\r\033[K" + ("" if done == total else line), end="", file=sys.stderr, flush=True)

    return show


def warn(*texts: str) -> None:
    for text in texts:
        print(wrap_for_terminal(f"ollm: {text}"), file=sys.stderr)


def wrap_for_terminal(text: str) -> str:
    """Wrap the first line between words if stderr is a terminal, which would break inside words. Later lines may be
    commands to copy and stay unchanged."""
    if not sys.stderr.isatty():
        return text
    first, newline, rest = text.partition("\n")
    return wrap_words(first, "  ") + newline + rest
