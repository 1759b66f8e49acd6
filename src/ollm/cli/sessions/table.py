"""The list of sessions, asked of the index directly and printed without click, so that it is there at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ollm.cli.table import print_table, warn
from ollm.domain.short_ids import shorten_ids
from ollm.system.terminal_text import make_printable

TITLE_CELLS, MODEL_CELLS, WORKSPACE_CELLS = 44, 20, 28
LIST_SECONDS = 2.0  # that a list may take to read sessions it does not know
SIMPLE_ARGUMENTS: dict[tuple[str, ...], bool] = {(): False, ("--json",): True}  # arguments that need no parser


def show_sessions(
    *,
    trash: bool = False,
    limit: int | None = None,
    place: str | None = None,
    as_json: bool = False,
    tasks: bool = False,
) -> None:
    """Print all sessions, or those of the workspace at `place`; those of `tasks` only when they are wanted."""
    from ollm.app import ProcessScope

    process = ProcessScope()
    rows = (
        _list_trashed(process)
        if trash
        else process.session_index.list_sessions(make_progress("Reading sessions", "MB"), LIST_SECONDS, tasks=tasks)
    )
    if not trash:
        rows = _add_archived(process, rows, tasks=tasks)
    short = shorten_ids(row["sessionId"] for row in rows)
    if place:
        rows = [row for row in rows if row["workspace"] == place]
    rows = rows[:limit]
    if as_json:
        print_rows(rows)
        return
    if not rows:
        warn("no sessions" + (" in the trash." if trash else " yet."))
        return
    headings = ("ID", "TITLE", "LAST ACTIVE", "MODEL", "MESSAGES", "TOKENS", "WORKSPACE")
    print_table(headings, [_format_cells(row, short) for row in rows])
    if not trash and (unread := process.session_index.unread):
        size = sum(unread.values()) // 1_000_000
        warn(f"{len(unread)} large sessions ({size:,} MB) are not read yet; run `ollm sessions list` again to read on.")
    for row in rows:
        if row["damaged"] and "archive" not in row:
            warn(f"session {row['sessionId']} is damaged: {make_printable(row['damaged'])}.")


def _add_archived(process: Any, rows: list[dict[str, Any]], *, tasks: bool) -> list[dict[str, Any]]:
    """With those that are in the team archive only."""
    from ollm.app.archived_sessions import list_archived_rows

    both = [*rows, *list_archived_rows(process, ask=True, tasks=tasks, warn=warn)]
    return sorted(both, key=lambda row: str(row["lastActivity"]), reverse=True)


def print_rows(rows: list[dict[str, Any]]) -> None:
    import json

    print(json.dumps(rows, ensure_ascii=False, indent=2))


def make_progress(label: str, unit: str = "") -> Callable[[int, int], None]:
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


def _list_trashed(process: Any) -> list[dict[str, Any]]:
    import msgspec

    rows: list[dict[str, Any]] = msgspec.to_builtins(process.library.list_trashed())
    return rows


def _format_cells(row: dict[str, Any], short: Mapping[str, str]) -> tuple[str, ...]:
    from ollm.domain.clock import format_age

    mark = {"active": "● ", "archived": "▫ "}.get(row["status"], "")
    title = "! " + row["damaged"] if row["damaged"] else row["title"]
    if row.get("origin") == "task":
        mark = "↳ "
    if place := row.get("archive"):
        mark, title = f"☁ {mark}", f"{title or '(no title)'} ({place['owner']} on {place['host']})"
    return (
        short[row["sessionId"]],
        mark + cut_text(title or "(no title)", TITLE_CELLS),
        format_age(row["lastActivity"]),
        cut_text(row["model"], MODEL_CELLS),
        str(row["messageCount"]),
        str(row["tokenCount"]),
        cut_text(row["workspace"] or "", WORKSPACE_CELLS, keep_end=True),
    )


def cut_text(text: str, length: int, *, keep_end: bool = False) -> str:
    if len(text) <= length:
        return text
    return "…" + text[-length + 1 :] if keep_end else text[: length - 1] + "…"
