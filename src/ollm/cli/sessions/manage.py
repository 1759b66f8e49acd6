"""The `sessions` commands that change something: delete, clear, cleanup, restore, archive, rename."""

from __future__ import annotations

import click

from ollm.cli.completers import complete_session
from ollm.cli.options import confirm_or_fail, workspace_option, yes_option
from ollm.cli.table import warn
from ollm.domain.counting import format_count
from ollm.domain.errors import OllmError, UsageError
from ollm.system.terminal_text import make_printable

DELETE_WARNING = "This also deletes its snapshots and cannot be undone."


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
@yes_option
def delete(session: str, yes: bool) -> None:
    """Delete a session permanently."""
    from ollm.app import ProcessScope
    from ollm.cli.sessions.table import make_progress
    from ollm.store.session_files.places import match_prefix

    process = ProcessScope()
    library = process.library
    session_id = match_prefix([*library.places.list_ids(), *_list_trashed(library)], session)
    title = _format_title(library, session_id)
    confirm_or_fail(f"Delete session {library.places.shorten_id(session_id)}{title}? {DELETE_WARNING}", yes)
    copies = _find_archived(process, [session_id])
    for error in library.delete_many([session_id], make_progress("Deleting")):
        raise error
    print(f"Deleted session {session_id}.{copies.explain_deletion() if copies else ''}")
    if left := [path.name for path in library.places.list_others(session_id)]:
        warn(f"Not written by ollm, and left: {', '.join(left)}.")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Delete all sessions.")
@yes_option
def clear(everything: bool, yes: bool) -> None:
    """Delete all sessions permanently, including the trash; open sessions are kept."""
    if not everything:
        raise UsageError("`sessions clear` deletes every session.", action="Add --all to confirm.")
    from ollm.app import ProcessScope

    process = ProcessScope()
    library = process.library
    ids = list(dict.fromkeys([*library.places.list_ids(), *_list_trashed(library)]))
    confirm_or_fail(f"Delete {format_count(len(ids), 'session')} with all snapshots? This cannot be undone.", yes)
    _delete_each(process, ids)


@click.command()
@click.option("--keep", type=int, required=True, metavar="N", help="How many of the newest to keep.")
@yes_option
def cleanup(keep: int, yes: bool) -> None:
    """Delete all but the newest sessions permanently, including the trash; open sessions are kept."""
    if keep < 0:
        raise UsageError(f"Cannot keep {keep} sessions.", action="Give a number, 0 or more.")
    from ollm.app import ProcessScope

    process = ProcessScope()
    library = process.library
    found = [summary.session_id for summary in library.list_summaries()]
    trashed = [session_id for session_id in _list_trashed(library) if session_id not in found]
    old = [*found[keep:], *trashed]
    if not old:
        print(f"There are no more than {format_count(keep, 'session')}; nothing deleted.")
        return
    where = f", {len(trashed)} of them in the trash" if trashed else ""
    what = f"all but the newest {format_count(keep, 'session')} ({len(old):,}{where})"
    confirm_or_fail(f"Delete {what}, with their snapshots? This cannot be undone.", yes)
    _delete_each(process, old)


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
def restore(session: str) -> None:
    """Restore a session from the trash."""
    from ollm.app import ProcessScope
    from ollm.store.session_files.places import match_prefix

    library = ProcessScope().library
    session_id = match_prefix(_list_trashed(library), session, "ollm sessions list --trash")
    library.restore(session_id)
    print(f"Restored session {session_id}.")


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@workspace_option
def archive(session: str | None, workspace: str | None) -> None:
    """Keep a session, but offer it no longer; without ID the newest one of the workspace."""
    _set_archived(session, workspace, True)


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_session)
@workspace_option
def unarchive(session: str | None, workspace: str | None) -> None:
    """Offer an archived session again; without ID the newest one of the workspace."""
    _set_archived(session, workspace, False)


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
@click.argument("title")
def rename(session: str, title: str) -> None:
    """Rename a session."""
    if not title.strip():
        raise UsageError("A title needs at least one character.")
    from ollm.app import ProcessScope

    library = ProcessScope().library
    session_id = library.places.find(session)
    library.rename(session_id, title.strip())
    print(f"Session {library.places.shorten_id(session_id)} renamed to {make_printable(title.strip())}.")


def _set_archived(session: str | None, workspace: str | None, archived: bool) -> None:
    from ollm.app import ProcessScope
    from ollm.cli.sessions.view import resolve_session_id

    process = ProcessScope()
    session_id = resolve_session_id(process, session, workspace)
    process.library.archive(session_id, archived)
    print(
        f"Session {process.session_files.places.shorten_id(session_id)} is {'archived' if archived else 'unarchived'}."
    )


def _list_trashed(library: SessionLibrary) -> list[str]:
    from ollm.store.session_files.places import list_ids_in

    return list_ids_in(library.places.trash) if library.places.trash else []


def _format_title(library: SessionLibrary, session_id: str) -> str:
    try:
        title = library.files.describe_session(session_id).metadata.title
    except OllmError:
        return ""
    return f" ({make_printable(title)})" if title else ""


def _find_archived(process: ProcessScope, ids: list[str]) -> ArchivedCopies | None:
    """The copies in the team archive; None where there is none."""
    if not process.home.archive_state.exists():
        return None
    from ollm.app.archive_deletions import ArchivedCopies

    return ArchivedCopies(process, ids)


def _delete_each(process: ProcessScope, ids: list[str]) -> None:
    """Delete one after another; what stays is named, and the command fails."""
    from ollm.cli.sessions.table import make_progress

    copies = _find_archived(process, ids)
    failed = process.library.delete_many(ids, make_progress("Deleting"))
    for error in failed:
        warn(error.message)
    gone = len(ids) - len(failed)
    print(f"Deleted {format_count(gone, 'session')}.{copies.explain_deletion() if copies else ''}")
    if failed:
        raise OllmError(f"{len(failed)} could not be deleted.")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from ollm.app import ProcessScope
    from ollm.app.archive_deletions import ArchivedCopies
    from ollm.services.chat_recording import SessionLibrary
