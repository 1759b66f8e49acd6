"""`sessions list` and `sessions search`: query the index directly, without asyncio or rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from ollm.app.process import ProcessScope
from ollm.archive.listing import list_archived_rows, search_archived
from ollm.cli.options import format_table, make_progress, print_json, shared_options, warn
from ollm.domain.clock import format_age, format_stamp, parse_stamp
from ollm.domain.errors import UsageError
from ollm.domain.text import format_count, shorten_ids, shorten_line
from ollm.system.terminal_text import make_printable

TITLE_CELLS, MODEL_CELLS, WORKSPACE_CELLS = 44, 20, 28
LIST_SECONDS = 2.0  # After this time, unread sessions are listed by their files' times.


@click.command("list")
@click.option("--trash", is_flag=True, help="List sessions in the trash.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number to show.")
@shared_options("tasks", "within", "json")
def list_sessions(trash: bool, limit: int | None, tasks: bool, within: Path | None, as_json: bool) -> None:
    """List all sessions: those that wait for an answer, then last active first; --workspace narrows it to one."""
    process = ProcessScope()
    if trash:
        import msgspec

        rows = msgspec.to_builtins(process.library.list_trashed())
    else:
        rows = process.session_index.list_sessions(make_progress("Reading sessions", "MB"), LIST_SECONDS, tasks=tasks)
        rows += list_archived_rows(process, ask=True, tasks=tasks, warn=warn)
        rows.sort(key=lambda row: str(row["lastActivity"]), reverse=True)
        mark_working(process, rows)
    short = shorten_ids(row["sessionId"] for row in rows)
    if within:
        rows = [row for row in rows if row["workspace"] == str(within)]
    rows = rows[:limit]
    if as_json:
        print_json(rows)
        return
    if not rows:
        warn("no sessions" + (" in the trash." if trash else " yet."))
        return
    print_sessions(rows, short)
    if not trash and (unread := process.session_index.unread):
        size = sum(unread.values()) // 1_000_000
        count = format_count(len(unread), "session") + (f" ({size:,} MB)" if size else "")
        warn(f"Not read yet: {count}. Run `ollm sessions list` again to read on.")
    for row in rows:
        if row["damaged"] and "archive" not in row:
            warn(f"session {row['sessionId']} is damaged: {make_printable(row['damaged'])}.")


def mark_working(process: ProcessScope, rows: list[dict[str, Any]]) -> None:
    """Mark the sessions in which the daemon works, and put those that wait for an answer first."""
    if (process.home.run / "daemon.sock").exists():
        import asyncio

        from ollm.cli.daemon import find_working_sessions

        working = asyncio.run(find_working_sessions())
        for row in rows:
            row.update(running=row["sessionId"] in working, questions=working.get(row["sessionId"], 0))
        rows.sort(key=lambda row: not row["questions"])


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--model", help="Only sessions with this model.")
@shared_options("since", "role", "limit", "tasks", "within", "json")
def search(
    text: tuple[str, ...],
    since: str | None,
    model: str | None,
    role: str | None,
    limit: int,
    tasks: bool,
    within: Path | None,
    as_json: bool,
) -> None:
    """Search all messages. TEXT is taken literally; all its words must be there, in any order."""
    from ollm.store.session_index.search import MAX_RANKED_HITS, SearchFilters, search_sessions

    filters = SearchFilters(str(within) if within else None, parse_since(since) if since else None, model, role, tasks)
    process = ProcessScope()
    index = process.session_index
    found = search_sessions(index, " ".join(text), filters, limit, make_progress("Reading sessions", "MB"))
    if index.behind:
        warn(f"{format_count(len(index.behind), 'large session')} only partly indexed; the next search continues.")
    if not found.ranked and found.total > MAX_RANKED_HITS:
        warn(f"more than {MAX_RANKED_HITS:,} hits: the newest are shown first.")
    if not found.complete:
        warn("searched only the newest messages; use more or longer words to search further back.")
    hits = found.hits
    if not within and not model:
        hits += search_archived(process, " ".join(text), limit, warn, tasks=tasks, role=role, since=filters.since)
    print_hits(hits, process.session_files.places.list_ids(), as_json=as_json)


def print_hits(hits: list[dict[str, Any]], session_ids: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json(hits)
        return
    if not hits:
        warn("no matches.")
    short = shorten_ids([*session_ids, *(hit["sessionId"] for hit in hits)])
    for hit in hits:
        when = format_age(hit["timestamp"])
        place = hit.get("archive")
        who = make_printable(f", ☁ {place['owner']} on {place['host']}") if place else ""
        print(f"{short[hit['sessionId']]} #{hit['number']} {hit['role']}, {when}{who}  {make_printable(hit['title'])}")
        print(f"    {make_printable(hit['snippet'])}")


def parse_since(text: str) -> str:
    """Convert a date, a time or an age to the timestamp format of sessions."""
    units = {"d": 86400, "h": 3600, "m": 60}
    try:
        if text[-1:] in units and text[:-1].isdigit():
            return format_stamp(datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * units[text[-1]]))
        return format_stamp(parse_stamp(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time.", action="Write 2026-01-27, 2026-01-27T10:00, 7d or 12h.") from error


def print_sessions(rows: list[dict[str, Any]], short: Mapping[str, str] | None = None) -> None:
    """Print sessions as a table. `short` maps ids to prefixes that are unique in a longer list."""
    short = short or shorten_ids(row["sessionId"] for row in rows)
    headings = ("ID", "TITLE", "LAST ACTIVE", "MODEL", "MESSAGES", "TOKENS", "WORKSPACE")
    print(format_table(headings, [_format_cells(row, short) for row in rows]))


def _format_cells(row: dict[str, Any], short: Mapping[str, str]) -> tuple[str, ...]:
    mark = {"active": "● ", "archived": "▫ "}.get(row["status"], "")
    mark = "? " if row.get("questions") else "▶ " if row.get("running") else mark
    title = row["title"] if "archive" in row else row["damaged"] or row["title"]
    title = f"! {title or row['damaged']}" if row["damaged"] else title
    if row.get("origin") == "task":
        mark = "↳ "
    origin = ""
    if place := row.get("archive"):
        mark, origin = f"☁ {'● ' if place['inUse'] else ''}{mark}", f" ({place['owner']} on {place['host']})"
    place = row["workspace"] or ""
    return (
        short[row["sessionId"]],
        mark + shorten_line(title or "(no title)", TITLE_CELLS - len(origin)) + origin,
        format_age(row["lastActivity"]),
        shorten_line(row["model"], MODEL_CELLS),
        str(row["messageCount"]),
        str(row["tokenCount"]),
        place if len(place) <= WORKSPACE_CELLS else f"…{place[1 - WORKSPACE_CELLS :]}",
    )
