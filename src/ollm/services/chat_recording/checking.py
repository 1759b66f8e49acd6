"""Reads every session from end to end and reports damage; repairs it when asked, keeping the damaged file."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal

from ollm.domain.errors import DamagedError, OllmError
from ollm.domain.session import SCHEMA_VERSION
from ollm.domain.struct import Data

if TYPE_CHECKING:
    from ollm.store.session_files import SessionFiles, SessionStream
    from ollm.store.session_index.index import Progress

Outcome = Literal["damaged", "mended"]


class Finding(Data, frozen=True):
    """One thing that is wrong, and what came of it."""

    session_id: str
    problem: str
    outcome: Outcome = "damaged"


def check_sessions(files: SessionFiles, *, repair: bool, progress: Progress | None = None) -> list[Finding]:
    ids = files.places.list_ids()
    findings: list[Finding | None] = []
    for done, session_id in enumerate(ids, start=1):
        findings.append(_repair_session(files, session_id) if repair else _inspect_session(files, session_id))
        if progress:
            progress(done, len(ids))
    return [found for found in findings if found]


def _inspect_session(files: SessionFiles, session_id: str) -> Finding | None:
    text = "; ".join(filter(None, (_find_damage(files, session_id), _find_leftovers(files, session_id))))
    return Finding(session_id=session_id, problem=text) if text else None


def _find_damage(files: SessionFiles, session_id: str) -> str | None:
    """What is found when all of it is read, piece by piece."""
    try:
        with files.open_stream(session_id) as stream:
            _read_all(stream)
            return stream.damage
    except OllmError as error:
        return str(error)


def _read_all(stream: SessionStream) -> None:
    for entries in (stream.iter_messages(), stream.iter_calls()):
        deque(entries, maxlen=0)


def _find_leftovers(files: SessionFiles, session_id: str) -> str:
    return "" if files.is_open(session_id) else files.describe_leftovers(session_id)


def _repair_session(files: SessionFiles, session_id: str) -> Finding | None:
    """Read up to the first thing that is wrong, then written again; a large one is written while it is read."""
    left, small = _find_leftovers(files, session_id), not files.is_large(session_id)
    if small and not left and _is_whole(files, session_id):
        return None
    try:
        writer, loaded = files.open(session_id, to_continue=False, repair=not (small and left))
        try:
            writer.close()
        finally:
            writer.abandon()
        files.tidy(session_id)
    except DamagedError as error:
        if _is_newer(files, session_id):
            return _inspect_session(files, session_id)
        return Finding(session_id=session_id, problem=f"not repaired: {error.message}")
    except OllmError as error:
        found = _inspect_session(files, session_id)
        return found and Finding(session_id=session_id, problem=f"{found.problem}; not repaired: {error.message}")
    text = "; ".join(filter(None, (loaded.damage, left)))
    return Finding(session_id=session_id, problem=text, outcome="mended") if text else None


def _is_whole(files: SessionFiles, session_id: str) -> bool:
    from ollm.store.session_files.damage import DamageFoundError, StrictDamageReport

    try:
        with files.open_stream(session_id, StrictDamageReport()) as stream:
            _read_all(stream)
    except (OllmError, DamageFoundError):
        return False
    return True


def _is_newer(files: SessionFiles, session_id: str) -> bool:
    try:
        return files.describe_session(session_id).metadata.schema_version > SCHEMA_VERSION
    except OllmError:
        return False
