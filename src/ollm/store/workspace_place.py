"""Folder of a workspace's own data: `<workspace>/.ollm`, or one in the home if that cannot be used."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ollm.config.environment import Home
from ollm.system.atomic import read_json
from ollm.system.path_names import find_git_directories

GITIGNORE_TEXT = "memory.db*\n*.lock\n.gitignore\n"
PERSONAL_MARK = "memory.db.notes"  # This file marks a database that has the user's own notes.
DATABASE_ENDINGS = ("", "-journal", "-wal", "-shm")


def find_repository(folder: Path) -> Path | None:
    """Find the top of the git repository or worktree around a folder, without starting git."""
    return next((top for top in (folder, *folder.parents) if os.path.lexists(top / ".git")), None)


def get_worktree_directory(top: Path, named: str) -> Path:
    """Return the directory of a repository's worktrees. `named` is the setting `worktree.dir`."""
    return Path(os.path.realpath(top / Path(named.replace("{repo}", top.name)).expanduser()))


def find_main_workspace(workspace: Path, named: str) -> Path:
    """Return the same folder in the main repository if this is one of its worktrees in that directory, else this."""
    top = find_repository(workspace)
    if top is None or not (top / ".git").is_file():
        return workspace
    main = next(iter(find_git_directories(str(top))), "").removesuffix("/.git")
    is_ours = main and top.is_relative_to(get_worktree_directory(Path(main), named))
    return Path(main) / workspace.relative_to(top) if is_ours else workspace


def ensure_workspace_directory(workspace: Path, home: Home) -> Path:
    """Return the directory of `memory.db` and the lease. If it is missing, create it with a `.gitignore` for both.

    If that is the home itself, cannot be written, or holds a memory that came with an untrusted workspace, it is
    `~/.ollm/workspaces/` and a hash of the path.
    """
    own = workspace / ".ollm"
    if not is_same_path(own, home.root) and ensure_usable(own) and _is_ours(workspace, own / "memory.db", home):
        return own
    return ensure_fallback_directory(workspace, home)


def ensure_fallback_directory(workspace: Path, home: Home) -> Path:
    """Create and return the workspace's directory in the home."""
    apart = get_fallback_directory(workspace, home)
    apart.mkdir(mode=0o700, parents=True, exist_ok=True)
    return apart


def get_fallback_directory(workspace: Path, home: Home) -> Path:
    return home.workspaces / name_workspace(workspace)


def name_workspace(workspace: Path) -> str:
    """Return the name of a workspace's directory in the home, a hash of its path."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # hashlib loads OpenSSL, 1.5 % of a start
    except ImportError:
        from hashlib import sha256
    return str(sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:32])


def get_checkpoint_directory(workspace: Path, home: Home) -> Path:
    """Return the folder of a workspace's saved file states."""
    return home.checkpoints / get_fallback_directory(workspace, home).name


def find_database(workspace: Path, home: Home) -> Path | None:
    """Find the directory that already holds a `memory.db` of this workspace; creates nothing."""
    places = (*_list_own([workspace], home), get_fallback_directory(workspace, home))
    return next((place for place in places if (place / "memory.db").is_file()), None)


def has_personal_notes(workspace: Path, home: Home) -> bool:
    """Return True if the person wrote notes for this workspace, without opening a database."""
    places = (workspace / ".ollm", get_fallback_directory(workspace, home))
    return any((place / PERSONAL_MARK).exists() for place in places)


def find_databases(workspaces: Iterable[Path], home: Home) -> list[Path]:
    """List the directories with a `memory.db` of one of these workspaces, or of any workspace kept in the home."""
    found = dict.fromkeys([*_list_own(workspaces, home), *sorted(home.workspaces.glob("*"))])
    return [place for place in found if (place / "memory.db").is_file()]


def _list_own(workspaces: Iterable[Path], home: Home) -> list[Path]:
    """List the `.ollm` of these workspaces, without the home itself and without links."""
    own = [workspace / ".ollm" for workspace in workspaces]
    return [place for place in own if not place.is_symlink() and not is_same_path(place, home.root)]


def find_untrusted_memory(workspace: Path, home: Home) -> Path | None:
    """Find a `memory.db` that came with an untrusted workspace, or return None if there is none or it may be used."""
    own = workspace / ".ollm" / "memory.db"
    return own if own.is_file() and not _is_ours(workspace, own, home) else None


def _is_ours(workspace: Path, database: Path, home: Home) -> bool:
    """Return True if the memory in a workspace may be used: it was made here, according to a mark in the home, came
    with a trusted workspace or was moved with its folder. A link in its place is never used."""
    mark = _get_mark(workspace, home)
    if any(database.with_name(database.name + end).is_symlink() for end in DATABASE_ENDINGS):
        return False
    is_new = not mark.exists()
    if is_new and database.exists() and not _was_moved(database, mark, home) and not _was_trusted(workspace, home):
        return False
    if is_new and not mark.exists():
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
    return True


def _get_mark(workspace: Path, home: Home) -> Path:
    return get_fallback_directory(workspace, home) / "made-here"


def keep_identity(workspace: Path, home: Home, read_identity: Callable[[], str]) -> None:
    """Keep the id of a workspace's memory in the home, so that it is recognized after the folder is moved."""
    with contextlib.suppress(OSError):
        if (mark := _get_mark(workspace, home)).exists() and not mark.stat().st_size:
            mark.write_text(read_identity(), encoding="ascii")


def _was_moved(database: Path, mark: Path, home: Home) -> bool:
    """Return True if the folder that this memory was made in is gone and the home knows the memory's id, which a
    stranger cannot guess. The old folder's mark then moves to this one."""
    identity, before = _read_identity(database)
    if not identity or not before or os.path.lexists(before):
        return False
    with contextlib.suppress(OSError):
        known = _get_mark(Path(before), home)
        if known.read_text(encoding="ascii") == identity:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            known.replace(mark)
            return True
    return False


def _read_identity(database: Path) -> tuple[str, str]:
    """Read the id and the folder of a memory that may be a stranger's, without running anything in it."""
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            facts = dict(connection.execute("SELECT name, value FROM identity WHERE name IN ('id', 'path')"))
        return str(facts.get("id", "")), os.fsdecode(facts.get("path", ""))
    except (sqlite3.Error, TypeError, ValueError):
        return "", ""


def _was_trusted(workspace: Path, home: Home) -> bool:
    document = read_json(home.trust, dict[str, Any], {})
    return os.path.realpath(workspace) in (document.get("workspaces") or {})


def is_same_path(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def ensure_usable(directory: Path) -> bool:
    """Create the directory if necessary and return True if it is writable; a link in its place is not followed."""
    if directory.is_symlink():
        return False
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    with contextlib.suppress(OSError):  # An existing file stays, and a link is not followed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(directory / ".gitignore", flags, 0o644), "w", encoding="utf-8") as ignore:
            ignore.write(GITIGNORE_TEXT)
    return True


def has_interrupted_restore(home: Home) -> bool:
    """Return True if any workspace has an interrupted restore. Checks one name each, since every start does this."""
    try:
        with os.scandir(home.checkpoints) as places:
            return any(os.path.exists(f"{place.path}/restore.journal") for place in places)  # noqa: PTH110
    except OSError:
        return False
