"""`archive list` and `archive search`: what the archive holds that this person may see."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json
from ollm.cli.table import print_table, warn
from ollm.domain.clock import format_age
from ollm.domain.short_ids import shorten_ids
from ollm.system.terminal_text import make_printable

TITLE_CELLS, MODEL_CELLS, WORKSPACE_CELLS = 44, 20, 28


@click.command("list")
@click.option("--limit", type=click.IntRange(min=1, max=1000), default=100, show_default=True, help="Maximum to show.")
@click.option("--all", "tasks", is_flag=True, help="Include the sessions of tasks.")
@json_option
def list_archived(limit: int, tasks: bool, as_json: bool) -> None:
    """List the sessions in the archive that you may see, last active first."""
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope
    from ollm.cli.sessions.table import cut_text
    from ollm.store.team_archive.reading import list_sessions

    archive = TeamArchiveScope(ProcessScope())
    with archive.connect() as connection:
        found = list_sessions(connection, limit=limit, tasks=tasks)
    if as_json:
        print_json(found)
        return
    if not found:
        warn("the archive holds no session that you may see.")
        return
    short = shorten_ids(row.session_id for row in found)
    rows = [
        (
            short[row.session_id],
            ("● " if row.in_use else "")
            + ("↳ " if row.origin == "task" else "")
            + cut_text(f"! {row.title or row.damaged}" if row.damaged else row.title or "(no title)", TITLE_CELLS),
            format_age(row.last_activity),
            f"{row.owner} on {row.host}",
            cut_text(row.model, MODEL_CELLS),
            row.message_count,
            cut_text(row.workspace or "", WORKSPACE_CELLS, keep_end=True),
        )
        for row in found
    ]
    print_table(("ID", "TITLE", "LAST ACTIVE", "FROM", "MODEL", "MESSAGES", "WORKSPACE"), rows)


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--role", type=click.Choice(["user", "assistant", "system", "tool"]), help="Only messages of this role.")
@click.option("--since", metavar="TIME", help="Only messages since this time (2026-01-27, 2026-01-27T10:00, 7d, 12h).")
@click.option("--limit", type=click.IntRange(min=1, max=1000), default=20, show_default=True, help="Maximum to show.")
@click.option("--all", "tasks", is_flag=True, help="Include the sessions of tasks.")
@json_option
def search(text: tuple[str, ...], role: str | None, since: str | None, limit: int, tasks: bool, as_json: bool) -> None:
    """Search all messages in the archive that you may see. TEXT is taken literally; all its words must be there."""
    from ollm.app import ProcessScope
    from ollm.app.team_archive import TeamArchiveScope
    from ollm.cli.sessions.listing import parse_since
    from ollm.store.team_archive.reading import search_messages

    wanted = parse_since(since) if since else None
    archive = TeamArchiveScope(ProcessScope())
    with archive.connect() as connection:
        hits = search_messages(connection, " ".join(text), limit=limit, role=role, since=wanted, tasks=tasks)
    if as_json:
        print_json(hits)
        return
    if not hits:
        warn("no matches.")
    short = shorten_ids(hit.session_id for hit in hits)
    for hit in hits:
        where = f"{short[hit.session_id]} #{hit.number} {hit.role}, {format_age(hit.timestamp)}"
        print(f"{where}, {make_printable(f'{hit.owner} on {hit.host}')}  {make_printable(hit.title)}")
        print(f"    {make_printable(hit.snippet)}")
