"""Sessions of other machines in the team archive, for lists, the picker and searches.

The list is the shipper's copy (`archive.db`), which is refreshed if it is old. If the server does not answer at once,
only the newest rows are missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ollm.domain.clock import to_epoch_ms
from ollm.domain.errors import NotFoundError, OllmError
from ollm.store.session_files.places import match_prefix

if TYPE_CHECKING:
    from ollm.archive.host import ArchiveHost

MAX_AGE_SECONDS = 30
ASK_TIMEOUT_SECONDS = 2.0
Warn = Callable[[str], None]


def is_archive_used(process: ArchiveHost, *, ask: bool) -> bool:
    """Return True if this home has an archive. Without `ask`, its state file must exist too. These file checks come
    first, so that a home without an archive or settings pays nothing."""
    if not (ask or process.home.archive_state.exists()) or not (process.workspace or process.home.config.exists()):
        return False
    return process.settings.archive.is_set


def list_archived_rows(
    process: ArchiveHost, *, ask: bool, tasks: bool = False, warn: Warn = lambda _text: None
) -> list[dict[str, Any]]:
    """List sessions that are only in the archive, in the form of the local list. `archive` in each row holds the
    owner, the machine, and where the session is in use. `ask` refreshes an old list, `tasks` includes tasks."""
    if not is_archive_used(process, ask=ask):
        return []
    import msgspec

    from ollm.archive.state import ArchiveState

    with contextlib.closing(ArchiveState(process.home.archive_state, process.clock)) as state:
        if ask and to_epoch_ms(process.clock()) - int(state.get_fact("listed-at") or 0) > MAX_AGE_SECONDS * 1000:
            try:
                refresh_list(process)
            except OllmError as error:
                warn(f"the archive's sessions are from an earlier list: {error.message}")
        rows: list[dict[str, Any]] = msgspec.json.decode(state.get_fact("listed") or "[]")
    here = set(process.session_files.places.list_ids())
    shown = (row for row in rows if tasks or row["origin"] not in ("task", "compare"))
    return [make_row(row) for row in shown if row["sessionId"] not in here]


def refresh_list(process: ArchiveHost) -> None:
    from ollm.archive.reading import list_sessions
    from ollm.archive.team_archive import TeamArchive

    archive = TeamArchive(process)
    with contextlib.closing(archive), archive.connect(timeout=ASK_TIMEOUT_SECONDS) as connection:
        archive.state.save_listed(list_sessions(connection, tasks=True))


def make_row(row: dict[str, Any]) -> dict[str, Any]:
    names = ("sessionId", "startTime", "lastActivity", "model", "messageCount", "tokenCount", "title", "workspace")
    place = {"owner": row["owner"], "host": row["host"], "inUse": row["inUse"]}
    kept = {name: row[name] for name in names}
    return {**kept, "status": "closed", "damaged": row["damaged"], "origin": row["origin"], "archive": place}


def list_workspace_rows(process: ArchiveHost, workspace: str) -> list[dict[str, Any]]:
    """List sessions of folders with the same name, because other machines may have the folder elsewhere."""
    name = PurePath(workspace).name
    rows = list_archived_rows(process, ask=False)
    return [row for row in rows if row["workspace"] and PurePath(row["workspace"]).name == name]


def search_archived(
    process: ArchiveHost, text: str, limit: int, warn: Warn, *, tasks: bool = False, **filters: str | None
) -> list[dict[str, Any]]:
    """Search sessions that are only in the archive; each hit has `archive`."""
    if not is_archive_used(process, ask=True):
        return []
    import msgspec

    from ollm.archive.reading import search_messages
    from ollm.archive.team_archive import TeamArchive

    archive = TeamArchive(process)
    try:
        with contextlib.closing(archive), archive.connect(timeout=ASK_TIMEOUT_SECONDS) as connection:
            hits = search_messages(connection, text, limit=limit, tasks=tasks, **filters)
    except OllmError as error:
        warn(f"the archive was not searched: {error.message}")
        return []
    here = set(process.session_files.places.list_ids())
    rows: list[dict[str, Any]] = msgspec.to_builtins([hit for hit in hits if hit.session_id not in here])
    return [{**row, "archive": {"owner": row.pop("owner"), "host": row.pop("host")}} for row in rows]


def pull_when_archived(process: ArchiveHost, prefix: str, workspace: Path) -> str | None:
    """Pull a session that is listed in the archive but is not here. Returns its id, or None if it is not listed.

    A separate process does this, so that nothing of the archive is imported before the first request.
    """
    try:
        session_id = match_prefix([row["sessionId"] for row in list_archived_rows(process, ask=False)], prefix)
    except NotFoundError:
        return None
    from ollm.archive.process import ArchiveProcess

    ArchiveProcess(process).pull(session_id, workspace)
    return session_id


def describe_place(row: dict[str, Any]) -> str:
    """Describe the owner and the machine of an archived session."""
    place = row["archive"]
    in_use = f", in use on {place['inUse']}" if place.get("inUse") else ""
    return f"{place['owner']} on {place['host']}{in_use}"
