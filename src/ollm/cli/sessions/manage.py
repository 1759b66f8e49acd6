"""`ollm sessions`: delete, restore, archive, rename, rewind, fork and check."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ollm.app.closed_session import ClosedSession
from ollm.app.process import ProcessScope
from ollm.cli.completion import complete_session
from ollm.cli.options import confirm_or_fail, make_progress, print_result, resolve_workspace, shared_options, warn
from ollm.cli.sessions.view import resolve_session_id, warn_damage
from ollm.domain.errors import ExitCode, OllmError, UsageError
from ollm.domain.text import format_count
from ollm.runtime.rewind import RewindOutcome, RewindRequest
from ollm.services.chat_recording.library import check_sessions, read_metadata
from ollm.services.chat_recording.service import ignore_event
from ollm.store.session_files.places import list_ids_in, match_prefix
from ollm.system.terminal_text import make_printable

if TYPE_CHECKING:
    from ollm.archive.process import ArchivedCopies
    from ollm.services.chat_recording.library import SessionLibrary

DELETE_WARNING = "This also deletes its snapshots and cannot be undone."


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
@shared_options("yes")
def delete(session: str, yes: bool) -> None:
    """Delete a session permanently."""
    process = ProcessScope()
    library = process.library
    session_id = match_prefix([*library.places.list_ids(), *_list_trashed(library)], session)
    named = read_metadata(library.files, session_id).title
    title = f" ({make_printable(named)})" if named else ""
    confirm_or_fail(f"Delete session {library.places.shorten_id(session_id)}{title}? {DELETE_WARNING}", yes)
    copies = _find_archived(process, [session_id])
    for error in library.delete_many([session_id], make_progress("Deleting")):
        raise error
    print(f"Deleted session {session_id}.{copies.explain_deletion() if copies else ''}")
    if left := [path.name for path in library.places.list_others(session_id)]:
        warn(f"Not written by ollm, and left: {', '.join(left)}.")


@click.command()
@click.option("--all", "everything", is_flag=True, help="Delete all sessions.")
@shared_options("yes")
def clear(everything: bool, yes: bool) -> None:
    """Delete all sessions permanently, including the trash; open sessions are kept."""
    if not everything:
        raise UsageError("`sessions clear` deletes every session.", action="Add --all to confirm.")
    process = ProcessScope()
    ids = list(dict.fromkeys([*process.library.places.list_ids(), *_list_trashed(process.library)]))
    _delete_each(process, ids, f"{format_count(len(ids), 'session')} with all snapshots", yes)


@click.command()
@click.option("--keep", type=click.IntRange(min=0), required=True, metavar="N", help="How many of the newest to keep.")
@shared_options("yes")
def cleanup(keep: int, yes: bool) -> None:
    """Delete all but the newest sessions permanently, including the trash; open sessions are kept."""
    process = ProcessScope()
    library = process.library
    found = [summary.session_id for summary in library.list_summaries()]
    trashed = [session_id for session_id in _list_trashed(library) if session_id not in found]
    old = [*found[keep:], *trashed]
    if not old:
        print(f"There are no more than {format_count(keep, 'session')}; nothing deleted.")
        return
    where = f", {len(trashed)} of them in the trash" if trashed else ""
    what = f"all but the newest {format_count(keep, 'session')} ({len(old):,}{where}), with their snapshots"
    _delete_each(process, old, what, yes)


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
def restore(session: str) -> None:
    """Restore a session from the trash."""
    library = ProcessScope().library
    session_id = match_prefix(_list_trashed(library), session, "ollm sessions list --trash")
    library.restore(session_id)
    print(f"Restored session {session_id}.")


@click.command()
@shared_options("session", "within")
def archive(session: str | None, within: Path | None) -> None:
    """Keep a session, but offer it no longer; without ID the newest one of the workspace."""
    _set_archived(session, within, True)


@click.command()
@shared_options("session", "within")
def unarchive(session: str | None, within: Path | None) -> None:
    """Offer an archived session again; without ID the newest one of the workspace."""
    _set_archived(session, within, False)


@click.command()
@click.argument("session", metavar="ID", shell_complete=complete_session)
@click.argument("title")
def rename(session: str, title: str) -> None:
    """Rename a session."""
    if not title.strip():
        raise UsageError("A title needs at least one character.")
    library = ProcessScope().library
    session_id = library.places.find(session)
    warn_damage(library.rename(session_id, title.strip()))
    print(f"Session {library.places.shorten_id(session_id)} renamed to {make_printable(title.strip())}.")


def _set_archived(session: str | None, within: Path | None, archived: bool) -> None:
    process = ProcessScope()
    session_id = resolve_session_id(process, session, within)
    warn_damage(process.library.archive(session_id, archived))
    print(
        f"Session {process.session_files.places.shorten_id(session_id)} is {'archived' if archived else 'unarchived'}."
    )


def _list_trashed(library: SessionLibrary) -> list[str]:
    return list_ids_in(library.places.trash) if library.places.trash else []


def _find_archived(process: ProcessScope, ids: list[str]) -> ArchivedCopies | None:
    """List the copies in the team archive, or return None without one."""
    if not process.home.archive_state.exists():
        return None
    from ollm.archive.process import ArchivedCopies

    return ArchivedCopies(process, ids)


def _delete_each(process: ProcessScope, ids: list[str], what: str, yes: bool) -> None:
    """Ask, then delete sessions one after another. Names those that remain, and then fails."""
    confirm_or_fail(f"Delete {what}? This cannot be undone.", yes)
    copies = _find_archived(process, ids)
    failed = process.library.delete_many(ids, make_progress("Deleting"))
    warn(*(error.message for error in failed))
    gone = len(ids) - len(failed)
    print(f"Deleted {format_count(gone, 'session')}.{copies.explain_deletion() if copies else ''}")
    if failed:
        raise OllmError(f"{len(failed)} could not be deleted.")


@click.command()
@shared_options("session")
@click.option("--to", "number", type=click.IntRange(1), required=True, metavar="N", help="Message to go back before.")
@click.option("--files", is_flag=True, help="Also put files back as they were before that message.")
@click.option("--force", is_flag=True, help="Also files that others changed since.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@shared_options("within", "json")
def rewind(
    session: str | None, number: int, files: bool, force: bool, dry_run: bool, within: Path | None, as_json: bool
) -> int:
    """Go back to before a message of yours; the history stays.

    The session goes on from there when it is next resumed. Without ID, the newest session of the workspace. The state
    before is saved too: `ollm sessions redo` or /redo in the chat takes it back. Exit code 1 if a file was left alone.
    """
    closed, session_id = open_closed_session(session, within, files=files)
    request = RewindRequest(number=number, scope="both" if files else "talk", force=force, yes=not dry_run)
    going_back = closed.rewind(session_id, lambda flow: flow.rewind(request), dry_run=dry_run)
    return print_outcome(asyncio.run(going_back), as_json=as_json)


@click.command()
@shared_options("session")
@click.option("--force", is_flag=True, help="Also files that others changed since.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@shared_options("within", "json")
def redo(session: str | None, force: bool, dry_run: bool, within: Path | None, as_json: bool) -> int:
    """Take back the last rewind, as long as nothing was said since.

    Without ID, the newest session of the workspace. Exit code 1 if a file was left alone.
    """
    closed, session_id = open_closed_session(session, within, files=True)
    going_forward = closed.rewind(
        session_id, lambda flow: flow.redo(force=force, dry_run=dry_run), kind="redo", dry_run=dry_run
    )
    return print_outcome(asyncio.run(going_forward), as_json=as_json)


@click.command()
@shared_options("session")
@click.option(
    "--at", "number", type=click.IntRange(1), metavar="N", help="Last message to copy; default: the last one."
)
@shared_options("within", "json")
def fork(session: str | None, number: int | None, within: Path | None, as_json: bool) -> None:
    """Copy a session up to a message to a new one; the original stays as it is.

    Without ID, the newest session of the workspace. Files stay as they are; a rewind in the fork reaches only its own
    turns.
    """
    process = ProcessScope()
    session_id = resolve_session_id(process, session, within)
    made = asyncio.run(process.create_recording_service(ignore_event).fork_session(session_id, number))
    print_result(made, f"{made.text}\nResume it: ollm chat --session {made.session_id}", as_json=as_json)


def open_closed_session(session: str | None, within: Path | None, *, files: bool) -> tuple[ClosedSession, str]:
    """Open a session in its original folder. `files`: that folder must exist."""
    place = within or resolve_workspace()
    process = ProcessScope(workspace=place)
    session_id = resolve_session_id(process, session, place)
    if within is None and (held_in := process.session_files.describe_session(session_id).metadata.workspace):
        place = Path(held_in)
    if files and not place.is_dir():
        raise UsageError(f"{place} is not there any more.", action="Name where it is now with --workspace.")
    return ClosedSession(ProcessScope(workspace=place), place), session_id


def print_outcome(done: RewindOutcome, *, as_json: bool) -> int:
    print_result(done, done.text, as_json=as_json)
    return ExitCode.FAILED if done.skipped and not done.dry_run else ExitCode.DONE


@click.command()
@click.option("--repair", is_flag=True, help="Repair what can be repaired; keep the damaged file as a copy.")
@shared_options("json")
def check(repair: bool, as_json: bool) -> int:
    """Find damaged sessions; exit code 1 if any stays damaged."""
    library = ProcessScope().library
    findings = check_sessions(library.files, repair=repair, progress=make_progress("Checking"))
    lines = [f"{found.session_id}  {found.outcome}: {make_printable(found.problem)}" for found in findings]
    healthy = len(library.places.list_ids()) - len(
        {found.session_id for found in findings if found.outcome != "mended"}
    )
    damaged = any(found.outcome == "damaged" for found in findings)
    lines.append(f"{format_count(healthy, 'session')} OK.")
    if damaged and not repair:
        lines.append("`ollm sessions check --repair` writes clean files and keeps the old ones beside them.")
    print_result(findings, "\n".join(lines), as_json=as_json)
    return ExitCode.FAILED if damaged else ExitCode.DONE
