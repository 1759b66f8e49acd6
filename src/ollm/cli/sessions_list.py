"""`sessions list` and `sessions search`: asked of the index directly, so that they answer at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from ollm.cli.options import json_option, print_table, resolve_workspace, warn, workspace_option
from ollm.cli.printable import printable
from ollm.domain.errors import UsageError

TITLE, MODEL, PLACE = 44, 20, 28


@click.command("list")
@click.option("--trash", is_flag=True, help="List what the limit removed and can be restored.")
@click.option("--limit", type=click.IntRange(min=1), help="Show at most this many.")
@workspace_option
@json_option
def list_sessions(trash: bool, limit: int | None, workspace: str | None, as_json: bool) -> None:
    """List all sessions, last active first; --workspace narrows it to one."""
    from ollm.app import Process

    process = Process()
    rows = _trashed(process) if trash else process.session_index.lines(progress("Reading sessions", "MB"))
    if workspace:
        wanted = str(resolve_workspace(workspace))
        rows = [row for row in rows if row["workspace"] == wanted]
    rows = rows[:limit]
    if as_json:
        print_rows(rows)
        return
    if not rows:
        warn("there are no sessions" + (" in the trash." if trash else " yet."))
        return
    now = datetime.now(UTC)
    headings = ("ID", "TITLE", "LAST ACTIVE", "MODEL", "MESSAGES", "TOKENS", "WORKSPACE")
    print_table(headings, [_cells(row, now) for row in rows])
    for row in rows:
        if row["damaged"]:
            warn(f"session {row['sessionId']} is damaged: {printable(row['damaged'])}.")


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--since", metavar="TIME", help="Said at or after this time (2026-01-27, 2026-01-27T10:00, 7d, 12h).")
@click.option("--model", help="In sessions with this model.")
@click.option("--role", type=click.Choice(["user", "assistant", "system", "tool"]), help="Said by.")
@click.option("--limit", type=click.IntRange(min=1, max=1000), default=20, show_default=True, help="Show at most.")
@workspace_option
@json_option
def search(
    text: tuple[str, ...],
    since: str | None,
    model: str | None,
    role: str | None,
    limit: int,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Find what was said. TEXT is taken literally; all its words must be there, in any order."""
    from ollm.app import Process
    from ollm.store.session_index.search import RANKED_UP_TO, Filters
    from ollm.store.session_index.search import search as find

    place = str(resolve_workspace(workspace)) if workspace else None
    filters = Filters(place, parse_since(since) if since else None, model, role)
    index = Process().session_index
    found = find(index, " ".join(text), filters, limit, progress("Reading sessions", "MB"))
    if index.behind:
        warn(f"{len(index.behind)} large sessions are not searched to their end yet; the next search reads on.")
    if not found.ranked and found.total > RANKED_UP_TO:
        warn(f"more than {RANKED_UP_TO} hits: the newest are shown first.")
    if not found.complete:
        warn("only the newest texts were looked through: more or longer words reach further back.")
    if as_json:
        print_rows(found.hits)
        return
    if not found.hits:
        warn("nothing was found.")
    for hit in found.hits:
        print(f"{hit['sessionId'][:8]} #{hit['number']} {hit['role']}, {hit['timestamp']}  {printable(hit['title'])}")
        print(f"    {printable(hit['snippet'])}")


def print_rows(rows: list[dict[str, Any]]) -> None:
    import json

    print(json.dumps(rows, ensure_ascii=False, indent=2))


def parse_since(text: str) -> str:
    """A time as sessions write it, from a date, a time or how long ago."""
    from datetime import timedelta

    from ollm.domain.clock import parse_stamp, stamp

    units = {"d": 86400, "h": 3600, "m": 60}
    try:
        if text[-1:] in units and text[:-1].isdigit():
            return stamp(datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * units[text[-1]]))
        return stamp(parse_stamp(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is no time.", action="Write 2026-01-27, 2026-01-27T10:00, 7d or 12h.") from error


def progress(label: str, unit: str = "") -> Callable[[int, int], None]:
    """A bar on stderr, once something has taken longer than a second and somebody looks on; bytes are shown in MB."""
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


def ago(moment: str, now: datetime) -> str:
    """When, in the words people use."""
    from ollm.domain.clock import parse_stamp

    try:
        seconds = (now - parse_stamp(moment)).total_seconds()
    except (ValueError, TypeError):
        return ""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if size <= seconds < 30 * 86400:
            return f"{int(seconds // size)} {name} ago"
    return "now" if 0 <= seconds < 60 else moment[:10]


def _trashed(process: Any) -> list[dict[str, Any]]:
    import msgspec

    rows: list[dict[str, Any]] = msgspec.to_builtins(process.library.trashed())
    return rows


def _cells(row: dict[str, Any], now: datetime) -> tuple[str, ...]:
    mark = {"active": "● ", "archived": "▫ "}.get(row["status"], "")
    title = "! " + row["damaged"] if row["damaged"] else row["title"]
    return (
        row["sessionId"][:8],
        mark + _cut(title or "(no title)", TITLE),
        ago(row["lastActivity"], now),
        _cut(row["model"], MODEL),
        str(row["messageCount"]),
        str(row["tokenCount"]),
        _cut(row["workspace"] or "", PLACE, keep_end=True),
    )


def _cut(text: str, length: int, *, keep_end: bool = False) -> str:
    if len(text) <= length:
        return text
    return "…" + text[-length + 1 :] if keep_end else text[: length - 1] + "…"
