"""Names on disk of everything that belongs to one session. An id is parsed before it touches a path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ollm.domain.errors import NotFoundError, StorageError, UsageError
from ollm.domain.struct import Data

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_COPY = r"(?:\.(?:damaged|original|replaced)-\d[\w-]*)?"
_OWN_FILE = rf"{_UUID}\.(?:lock|(?:json|journal){_COPY})|\.{_UUID}\..+\.tmp"
_PREFIX = r"[0-9a-f-]{4,36}"


def parse_id(text: str) -> str:
    """The id in its one spelling; anything that is no UUID is unknown by nature."""
    found = text.strip().lower()
    if not re.fullmatch(_UUID, found):
        raise NotFoundError(f"{text[:80]!r} is not a session id.", action="List them with `ollm sessions list`.")
    return found


class SessionPlaces(Data, frozen=True):
    """The directories sessions live in: their own, the one of an earlier version, and the trash."""

    directory: Path
    legacy: Path | None = None
    trash: Path | None = None

    def get_document_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.json"

    def get_journal_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.journal"

    def get_lock_path(self, session_id: str) -> Path:
        return self.directory / f"{session_id}.lock"

    def find_home(self, session_id: str) -> Path | None:
        """The directory whose files are this session, or None: its own comes before the earlier version's."""
        for directory in (self.directory, self.legacy):
            if directory and any(_exists(directory / f"{session_id}{end}") for end in (".json", ".journal")):
                return directory
        return None

    def list_ids(self) -> list[str]:
        """Every session there is, in the directory and in the earlier version's."""
        found: dict[str, None] = {}
        for directory in (self.directory, self.legacy):
            found.update(dict.fromkeys(list_ids_in(directory)) if directory else {})
        return list(found)

    def shorten_id(self, session_id: str) -> str:
        """As much of an id as tells it from every other session's."""
        from ollm.domain.short_ids import shorten_ids

        return shorten_ids([*self.list_ids(), session_id])[session_id]

    def iter_files(self, session_id: str) -> Iterator[Path]:
        """Every file of this session: documents, journals, locks, damaged, replaced and temporary copies. What somebody
        else gave such a name is not one of them."""
        for directory in (self.directory, self.legacy, self.trash):
            if directory and directory.is_dir():
                yield from iter_own_files(directory, session_id)
                yield from (path for path in directory.glob(f".{session_id}.*") if is_own_file(path))

    def list_others(self, session_id: str) -> list[Path]:
        """What has this session's name beside its files and is not ours."""
        found = [path for place in (self.directory, self.legacy) if place for path in place.glob(f"{session_id}.*")]
        return [path for path in found if not is_own_file(path)]

    def find(self, prefix: str) -> str:
        """The one session whose id starts with `prefix` (4 characters and up)."""
        try:
            return match_prefix(self.list_ids(), prefix)
        except NotFoundError:
            if not self.trash or not any(found.startswith(prefix.strip().lower()) for found in list_ids_in(self.trash)):
                raise
            raise NotFoundError(
                f"Session {prefix} is in the trash.", action=f"Restore it with `ollm sessions restore {prefix}`."
            ) from None


def is_own_file(path: Path) -> bool:
    """Whether a file in a directory of sessions has a name that we give; a directory never does."""
    return bool(re.fullmatch(_OWN_FILE, path.name)) and (path.is_symlink() or not path.is_dir())


def iter_own_files(directory: Path, session_id: str) -> Iterator[Path]:
    """A session's files in one directory: `.journal` before `.json`."""
    yield from (path for path in sorted(directory.glob(f"{session_id}.*")) if is_own_file(path))


def match_prefix(ids: list[str], prefix: str, shown_by: str = "ollm sessions list") -> str:
    """The id that starts with `prefix`; several are listed in the error. `shown_by` is the command that has all."""
    wanted = prefix.strip().lower()
    if not re.fullmatch(_PREFIX, wanted):
        raise UsageError(
            f"{prefix[:80]!r} is not a session id.", action="Give an id, or at least its first 4 characters."
        )
    found = sorted({session_id for session_id in ids if session_id.startswith(wanted)})
    if not found:
        raise NotFoundError(f"No session starts with {wanted}.", action=f"List them with `{shown_by}`.")
    if len(found) > 1:
        shown = "".join(f"\n  {session_id}" for session_id in found[:20])
        raise UsageError(f"{wanted} matches {len(found)} sessions:{shown}", action="\nUse a longer prefix.")
    return found[0]


def list_ids_in(directory: Path) -> list[str]:
    """The ids for which `directory` holds a document or a journal."""
    try:
        names = [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise make_unreadable_error(directory, error) from error
    stems = [name.rpartition(".")[0] for name in names if name.endswith((".json", ".journal"))]
    return [stem for stem in dict.fromkeys(stems) if re.fullmatch(_UUID, stem)]


def make_unreadable_error(directory: Path, error: OSError) -> StorageError:
    action = "Check the permissions of the directory."
    if isinstance(error, NotADirectoryError):
        action = "Move the file away, or set `sessions.dataDir` to a directory."
    return StorageError(f"Cannot read {directory}: {error.strerror}.", action=action)


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()
