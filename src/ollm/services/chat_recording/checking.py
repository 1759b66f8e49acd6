"""Reads every session from end to end and says what is wrong; mends it when asked, keeping the damaged file beside."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from ollm.domain.errors import OllmError
from ollm.domain.struct import Data

if TYPE_CHECKING:
    from ollm.store.session_files import SessionFiles
    from ollm.store.session_index.index import Progress

Outcome = Literal["damaged", "mended"]


class Finding(Data, frozen=True):
    """One thing that is wrong, and what came of it."""

    session_id: str
    problem: str
    outcome: Outcome = "damaged"


def check(files: SessionFiles, *, repair: bool, progress: Progress | None = None) -> list[Finding]:
    ids = files.places.ids()
    findings: list[Finding] = []
    for done, session_id in enumerate(ids, start=1):
        findings += [_mended(files, found) if repair else found for found in _problems(files, session_id)]
        if progress:
            progress(done, len(ids))
    return findings


def _problems(files: SessionFiles, session_id: str) -> Iterator[Finding]:
    try:
        damage = _damage(files, session_id)
    except OllmError as error:
        damage = str(error)
    left = "" if files.is_open(session_id) else files.left_overs(session_id)
    text = "; ".join(filter(None, (damage, left)))
    if text:
        yield Finding(session_id=session_id, problem=text)


def _damage(files: SessionFiles, session_id: str) -> str | None:
    """What is found when all of it is read, piece by piece."""
    with files.stream(session_id) as stream:
        for entries in (stream.messages(), stream.calls()):
            deque(entries, maxlen=0)
        return stream.damage


def _mended(files: SessionFiles, found: Finding) -> Finding:
    try:
        writer, _ = files.open(found.session_id, to_continue=False)
        writer.close()
        files.tidy(found.session_id)
    except OllmError as error:
        return Finding(session_id=found.session_id, problem=f"{found.problem}; not mended: {error.message}")
    return Finding(session_id=found.session_id, problem=found.problem, outcome="mended")
