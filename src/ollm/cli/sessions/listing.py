"""`sessions list` and `sessions search`: asked of the index directly, so that they answer at once."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from ollm.cli.options import json_option, resolve_workspace, workspace_option
from ollm.cli.sessions.table import make_progress, print_rows, show_sessions
from ollm.cli.table import warn
from ollm.domain.clock import format_age
from ollm.domain.counting import format_count
from ollm.domain.errors import UsageError
from ollm.domain.short_ids import shorten_ids
from ollm.system.terminal_text import make_printable


@click.command("list")
@click.option("--trash", is_flag=True, help="List sessions in the trash.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number to show.")
@click.option("--all", "tasks", is_flag=True, help="Include the sessions of tasks.")
@workspace_option
@json_option
def list_sessions(trash: bool, limit: int | None, tasks: bool, workspace: str | None, as_json: bool) -> None:
    """List all sessions, last active first; --workspace narrows it to one."""
    show_sessions(trash=trash, limit=limit, place=resolve_place(workspace), as_json=as_json, tasks=tasks)


def resolve_place(workspace: str | None) -> str | None:
    return str(resolve_workspace(workspace)) if workspace else None


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--since", metavar="TIME", help="Only messages since this time (2026-01-27, 2026-01-27T10:00, 7d, 12h).")
@click.option("--model", help="Only sessions with this model.")
@click.option("--role", type=click.Choice(["user", "assistant", "system", "tool"]), help="Only messages of this role.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=1000), default=20, show_default=True, help="Maximum number to show."
)
@click.option("--all", "tasks", is_flag=True, help="Include the sessions of tasks.")
@workspace_option
@json_option
def search(
    text: tuple[str, ...],
    since: str | None,
    model: str | None,
    role: str | None,
    limit: int,
    tasks: bool,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Search all messages. TEXT is taken literally; all its words must be there, in any order."""
    from ollm.app import ProcessScope
    from ollm.store.session_index.search import MAX_RANKED_HITS, SearchFilters
    from ollm.store.session_index.search import search_sessions as find

    filters = SearchFilters(resolve_place(workspace), parse_since(since) if since else None, model, role, tasks)
    process = ProcessScope()
    index = process.session_index
    found = find(index, " ".join(text), filters, limit, make_progress("Reading sessions", "MB"))
    if index.behind:
        warn(f"{format_count(len(index.behind), 'large session')} only partly indexed; the next search continues.")
    if not found.ranked and found.total > MAX_RANKED_HITS:
        warn(f"more than {MAX_RANKED_HITS:,} hits: the newest are shown first.")
    if not found.complete:
        warn("searched only the newest messages; use more or longer words to search further back.")
    hits = found.hits
    if not workspace and not model:
        from ollm.app.archived_sessions import search_archived

        hits += search_archived(process, " ".join(text), limit, warn, tasks=tasks, role=role, since=filters.since)
    if as_json:
        print_rows(hits)
        return
    if not hits:
        warn("no matches.")
    short = shorten_ids([*process.session_files.places.list_ids(), *(hit["sessionId"] for hit in hits)])
    for hit in hits:
        when = format_age(hit["timestamp"])
        place = hit.get("archive")
        who = make_printable(f", ☁ {place['owner']} on {place['host']}") if place else ""
        print(f"{short[hit['sessionId']]} #{hit['number']} {hit['role']}, {when}{who}  {make_printable(hit['title'])}")
        print(f"    {make_printable(hit['snippet'])}")


def parse_since(text: str) -> str:
    """A time as sessions write it, from a date, a time or how long ago."""
    from datetime import timedelta

    from ollm.domain.clock import format_stamp, parse_stamp

    units = {"d": 86400, "h": 3600, "m": 60}
    try:
        if text[-1:] in units and text[:-1].isdigit():
            return format_stamp(datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * units[text[-1]]))
        return format_stamp(parse_stamp(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time.", action="Write 2026-01-27, 2026-01-27T10:00, 7d or 12h.") from error
