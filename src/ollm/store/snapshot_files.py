"""Snapshot files in the layout of H: one file per snapshot, an index for each session, and a map of all.

Index and map are derived. The index is rewritten if it is missing, broken or out of step with the files; the map is
for other programs, and only written.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.context import Checkpoint, GoalStack, ReasoningStorage
from ollm.domain.errors import DamagedError, NotFoundError, StorageError
from ollm.domain.session import ContextSnapshot, SnapshotMetadata, SnapshotSummary
from ollm.store.session_files.journal import encode_json
from ollm.store.session_files.places import match_prefix
from ollm.system.atomic import make_private_directory, replace_file

VERSION = 1
PREFIX, SUFFIX = "snapshot-", ".json"
INDEX, MAP = "snapshots-index.json", "snapshot-map.json"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"


_LATER_FIELDS: tuple[tuple[str, Any, Any], ...] = (  # Older forms lack these.
    ("goalStack", GoalStack, None),
    ("reasoningStorage", ReasoningStorage, None),
    ("checkpoints", tuple[Checkpoint, ...], []),
    ("archivedUserMessages", tuple[dict[str, Any], ...], []),
)


class SnapshotFiles:
    """All snapshots under one directory, `~/.ollm/context-snapshots`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, snapshot: ContextSnapshot) -> None:
        """Write the snapshot's file, durably; `register` then lists it. May run in a thread, since it shares no
        file."""
        make_private_directory(self._get_directory(snapshot.session_id))
        replace_file(self._get_path(snapshot.session_id, snapshot.id), _encode_json(msgspec.to_builtins(snapshot)))

    def register(self, snapshot: ContextSnapshot) -> None:
        entries = self._load_index(snapshot.session_id, without=snapshot.id)
        self._write_index(snapshot.session_id, [*entries, make_summary(snapshot)])
        self._write_map(self._scan() | {snapshot.id: snapshot.session_id})

    def load(self, snapshot_id: str) -> ContextSnapshot:
        """Load a snapshot. Raises an error if it is missing, broken, of another session, or of a newer version."""
        session_id = self.find_session(snapshot_id)
        return _read_snapshot(self._get_path(session_id, snapshot_id), session_id)

    def list_summaries(self, session_id: str) -> list[SnapshotSummary]:
        """List the summaries, newest first."""
        found = sorted(self._load_index(session_id), key=lambda entry: entry.timestamp)
        found.reverse()  # Of two taken in one millisecond the later one is first.
        return found

    def delete(self, snapshot_id: str) -> str:
        """Delete a snapshot and return the session it belonged to."""
        session_id = self.find_session(snapshot_id)
        self._get_path(session_id, snapshot_id).unlink(missing_ok=True)
        self._write_index(session_id, [entry for entry in self._load_index(session_id) if entry.id != snapshot_id])
        self._write_map({key: value for key, value in self._scan().items() if key != snapshot_id})
        return session_id

    def erase(self, session_id: str) -> None:
        """Remove a session from the map; its directory is removed with those of other parts."""
        if (self._root / MAP).exists():
            self._write_map({key: value for key, value in self._scan().items() if value != session_id})

    def find_session(self, snapshot_id: str) -> str:
        """Find a snapshot's session."""
        found = self._scan()
        if _check_name(snapshot_id, "snapshot") not in found:
            raise NotFoundError(f"No snapshot {snapshot_id}.", action="List them with `ollm snapshots list`.")
        return found[snapshot_id]

    def find(self, prefix: str) -> str:
        """Find the one snapshot whose id starts with `prefix` (at least 4 characters)."""
        return match_prefix([*self._scan()], prefix, "ollm snapshots list", "snapshot")

    def _get_directory(self, session_id: str) -> Path:
        return self._root / _check_name(session_id, "session") / "snapshots"

    def _get_path(self, session_id: str, snapshot_id: str) -> Path:
        return self._get_directory(session_id) / f"{PREFIX}{_check_name(snapshot_id, 'snapshot')}{SUFFIX}"

    def _list_ids(self, session_id: str) -> set[str]:
        names = [path.name for path in self._get_directory(session_id).glob(f"{PREFIX}*{SUFFIX}")]
        ids = {name.removeprefix(PREFIX).removesuffix(SUFFIX) for name in names}
        return {found for found in ids if re.fullmatch(_NAME, found)}

    def _load_index(self, session_id: str, without: str = "") -> list[SnapshotSummary]:
        """Load the index, in the order in which the snapshots were taken."""
        ids = self._list_ids(session_id) - {without}
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            entries = msgspec.json.decode(
                (self._get_directory(session_id) / INDEX).read_bytes(), type=list[SnapshotSummary]
            )
            if {entry.id for entry in entries} == ids:
                return entries
        return self._rebuild_index(session_id, ids)

    def _rebuild_index(self, session_id: str, ids: set[str]) -> list[SnapshotSummary]:
        """Rebuild the index from the files. A broken one is listed as such, so that it can be deleted."""
        found: list[SnapshotSummary] = []
        for snapshot_id in sorted(ids):
            try:
                found.append(make_summary(_read_snapshot(self._get_path(session_id, snapshot_id), session_id)))
            except (StorageError, NotFoundError) as error:
                unusable = SnapshotSummary(
                    id=snapshot_id, session_id=session_id, timestamp="", token_count=0, summary=f"unusable: {error}"
                )
                found.append(unusable)
        found.sort(key=lambda entry: entry.timestamp)
        if found:
            with contextlib.suppress(OSError):  # A list can be read without being written.
                self._write_index(session_id, found)
        return found

    def _write_index(self, session_id: str, entries: list[SnapshotSummary]) -> None:
        replace_file(
            self._get_directory(session_id) / INDEX, _encode_json([msgspec.to_builtins(entry) for entry in entries])
        )

    def _scan(self) -> dict[str, str]:
        sessions = [path.parent.name for path in self._root.glob("*/snapshots")]
        return {found: name for name in sessions if re.fullmatch(_NAME, name) for found in self._list_ids(name)}

    def _write_map(self, known: dict[str, str]) -> None:
        replace_file(self._root / MAP, _encode_json(known))


def make_summary(snapshot: ContextSnapshot) -> SnapshotSummary:
    return SnapshotSummary(
        id=snapshot.id,
        session_id=snapshot.session_id,
        timestamp=snapshot.timestamp,
        token_count=snapshot.token_count,
        summary=snapshot.summary,
        trigger=snapshot.trigger,
    )


def _read_snapshot(path: Path, session_id: str) -> ContextSnapshot:
    import json

    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise NotFoundError(f"The snapshot {path} no longer exists.") from error
    except OSError as error:
        raise StorageError(f"Cannot read the snapshot {path}: {error.strerror}.") from error
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise DamagedError(
            f"The snapshot {path} is broken: not a JSON object.", action="Delete it; the session is not affected."
        )
    version = document.get("schemaVersion", document.get("version", VERSION))
    if isinstance(version, int) and version > VERSION:
        raise StorageError(
            f"The snapshot {path} was written by a newer ollm.", action="Use that version to restore it."
        )
    if document.get("sessionId") != session_id:
        raise StorageError(f"The snapshot {path} belongs to another session, {document.get('sessionId')!r}.")
    name = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
    return _convert_snapshot(document | {"id": name}, path)


def _convert_snapshot(document: dict[str, Any], path: Path) -> ContextSnapshot:
    """Convert an older form, which may lack fields. Goals and thinking of another shape are left out."""
    filled: dict[str, Any] = {"summary": "", "tokenCount": 0, "userMessages": [], "messages": [], **document}
    metadata = filled.get("metadata") if isinstance(filled.get("metadata"), dict) else {}
    usual = {"model": "", "contextSize": 0, "compressionRatio": 1.0, "totalUserMessages": len(filled["userMessages"])}
    filled["metadata"] = _keep_if_valid(usual | dict(metadata or {}), SnapshotMetadata, usual)
    for name, kind, otherwise in _LATER_FIELDS:
        filled[name] = _keep_if_valid(filled.get(name, otherwise), kind, otherwise)
    try:
        return msgspec.convert(filled, ContextSnapshot)
    except msgspec.ValidationError as error:
        raise DamagedError(
            f"The snapshot {path} is broken: {error}.", action="Delete it; the session is not affected."
        ) from error


def _keep_if_valid(value: Any, kind: Any, otherwise: Any) -> Any:
    """Return the value if it has the expected form, else `otherwise`."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return otherwise
    return value


def _check_name(name: str, what: str) -> str:
    """Return a name that is safe as part of a path. Raises NotFoundError for any other."""
    if not re.fullmatch(_NAME, name):
        raise NotFoundError(f"{name[:80]!r} is not the id of a {what}.")
    return name


def _encode_json(value: Any) -> bytes:
    """Encode readable JSON, fast even for thousands of messages."""
    return msgspec.json.format(encode_json(value), indent=1)
