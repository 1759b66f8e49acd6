"""`ollm sessions scrub`: remove a text, such as a pasted password, from everything that ollm keeps."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import click

from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.archive.reading import find_text
from ollm.archive.team_archive import TeamArchive
from ollm.cli.daemon import get_run_files, stop
from ollm.cli.options import confirm_or_fail, format_table, print_result, shared_options, warn
from ollm.domain.errors import BusyError, ExitCode, OllmError, UsageError
from ollm.domain.text import format_count
from ollm.policy.grants import GrantBook
from ollm.services.scrub import ScrubbedFile, Scrubber, list_forms
from ollm.services.session_export.target import read_export_paths
from ollm.store.workspace_place import find_main_workspace

CLOSE_TIMEOUT_SECONDS = 5.0
WORDS = {"replaced": "replaced", "deleted": "deleted", "kept": "not changed: this file is yours", "failed": "FAILED"}


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show where the text is, and how often.")
@shared_options("yes", "json")
def scrub(dry_run: bool, yes: bool, as_json: bool) -> int:
    """Remove a text, such as a pasted password, from everything that ollm keeps.

    The text is asked for, or read from standard input; an argument would stay in the history of your shell. It is
    replaced in sessions, snapshots, saved file states, notes, logs and whatever else holds it here, and in the team
    archive. Exports and files of your own are named. If it is interrupted, run it again.
    """
    text = read_text()
    process = ProcessScope()
    workspaces = find_workspaces(process)
    look = Scrubber(process.home, process.session_files, workspaces, text, dry_run=True)
    found = look.run() + scrub_grants(process, text, dry_run=True)
    exports = look.find_exports(read_export_paths(process.home.exports))
    if dry_run:
        return report(found, exports, as_json=as_json, done="Found")
    count = format_count(sum(one.count for one in found if one.outcome != "kept"), "occurrence")
    confirm_or_fail(f"Remove {count} in {format_count(len(found), 'file')}? This cannot be undone.", yes)
    close_others(process, workspaces)
    done = [*scrub_grants(process, text, dry_run=False)]
    process.saved_slots.erase_all()
    done += Scrubber(process.home, process.session_files, workspaces, text, dry_run=False).run()
    process = ProcessScope()
    left = [one for one in look.run() if one.outcome != "kept"]
    done += [ScrubbedFile(path=one.path, count=one.count, outcome="failed", problem="still there") for one in left]
    code = report(done, exports, as_json=as_json, done="Removed")
    return max(code, push_to_archive(process, text))


def read_text() -> str:
    """Read the text from standard input, or ask for it without showing it."""
    if sys.stdin.isatty():
        return str(click.prompt("Text to remove (not shown)", hide_input=True, err=True))
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
    if not text:
        raise UsageError("The text is empty.", action="Pipe it in: `ollm sessions scrub < file`.")
    return text


def find_workspaces(process: ProcessScope) -> list[Path]:
    """Find the folders of all sessions that still exist, and this one."""
    rows = process.session_index.list_sessions(tasks=True)
    named = [Path(row["workspace"]) for row in rows if row["workspace"]]
    here = [place for place in (Path.cwd(), *named) if place.is_dir()]
    return list(
        dict.fromkeys(p for one in here for p in (one, find_main_workspace(one, process.settings.worktree.dir)))
    )


def scrub_grants(process: ProcessScope, text: str, *, dry_run: bool) -> list[ScrubbedFile]:
    """Revoke the grants that hold the text. Their file is YAML, which breaks long lines."""
    if not process.home.grants.exists():
        return []

    book = GrantBook(process.home.grants)
    numbers = [number for number, grant in enumerate(book.list_saved(), 1) if text in str(grant)]
    for number in [] if dry_run else reversed(numbers):
        book.revoke(number)
    here = ScrubbedFile(path=str(process.home.grants), count=len(numbers), outcome="deleted")
    return [here] if numbers else []


def close_others(process: ProcessScope, workspaces: list[Path]) -> None:
    """Stop the daemon, ask open sessions to close, and wait for them. Raises BusyError if one stays open."""
    if get_run_files().find_running() and stop.callback:
        with contextlib.redirect_stdout(sys.stderr):
            stop.callback()
    files = process.session_files
    ids = files.places.list_ids()
    for place in workspaces if any(map(files.is_open, ids)) else ():
        with contextlib.suppress(OSError):
            WorkspaceScope(process, place).create_lease().ask_owner_to_close()
    deadline = time.monotonic() + CLOSE_TIMEOUT_SECONDS
    while left := [session_id for session_id in ids if files.is_open(session_id)]:
        if time.monotonic() > deadline:
            raise BusyError(
                f"Session {left[0]} is open in another process and did not close.",
                action="Close it, then run `ollm sessions scrub` again. Nothing was changed.",
            )
        time.sleep(0.05)


def report(found: list[ScrubbedFile], exports: list[ScrubbedFile], *, as_json: bool, done: str) -> int:
    """Print where the text was, how often, and what became of it. Returns the exit code."""
    count = sum(one.count for one in found if one.outcome not in ("kept", "failed"))
    rows = [(one.count, one.path, one.problem or WORDS[one.outcome]) for one in found]
    rows += [(one.count, one.path, "not changed: an export") for one in exports]
    table = format_table(("TIMES", "FILE", "OUTCOME"), rows) + "\n\n" if rows else ""
    document = {"count": count, "files": found, "exports": exports}
    print_result(document, f"{table}{done}: {format_count(count, 'occurrence')}.", as_json=as_json)
    return ExitCode.FAILED if any(one.outcome in ("kept", "failed") for one in found) else ExitCode.DONE


def push_to_archive(process: ProcessScope, text: str) -> int:
    """Send the changed sessions to the team archive, if one is set, and name those that still have the text. Returns
    the exit code."""
    if not process.settings.archive.is_set:
        return ExitCode.DONE

    try:
        archive = TeamArchive(process)
        with archive.connect() as connection:
            skipped = archive.push(connection, None, lambda *_: None).skipped
            left = find_text(connection, list_forms(text))
    except OllmError as error:
        warn(f"The team archive still has it: {error}. Run `ollm archive push`.")
        return ExitCode.FAILED
    for session_id, why in skipped.items():
        warn(f"The team archive still has session {session_id} as it was: {why}")
    for session_id, owner, host in left:
        warn(
            f"The team archive still has it in session {session_id} of {owner} on {host}. Run `ollm archive pull"
            f" {session_id}` and scrub again, run `ollm archive forget {session_id}`, or ask its owner to."
        )
    return ExitCode.FAILED if skipped or left else ExitCode.DONE
