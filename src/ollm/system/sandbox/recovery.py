"""Moves aside the files that steer tools and were created by commands of killed agents, from the records that these
agents wrote."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ollm.system.sandbox.names import is_inside
from ollm.system.sandbox.records import read_left_over
from ollm.system.sandbox.taken import TakenFile, identify
from ollm.system.sandbox.watch import SteeringWatch

MAX_RECORD_SECONDS = 30 * 86_400  # that a record waits for a workspace that was moved or removed


def recover_taken(records: Path, workspace: str = "") -> list[TakenFile]:
    """Move aside files created by commands of killed agents; records of running agents are left alone. A workspace that
    was moved since is known by its inode as soon as we start in it; until then its record is kept."""
    taken: list[TakenFile] = []
    for file, record in read_left_over(records):
        with suppress(OSError, ValueError, KeyError, TypeError):  # damaged
            _follow_move(record, workspace)
            if _is_moved(record) and time.time() - file.stat().st_mtime < MAX_RECORD_SECONDS:
                continue
            watch = SteeringWatch(record["roots"], record["executed"], find_folder=partial(Path, record["folder"]))
            taken += watch.resume(record)
        file.unlink(missing_ok=True)
    with suppress(OSError):
        records.rmdir()
    return taken


def _is_moved(record: dict[str, Any]) -> bool:
    """Return True if the workspace of a record is missing, or another folder is in its place. Devices may be numbered
    anew when the machine starts."""
    before, now = (record.get("places") or [[]])[0], identify(record["roots"][0])
    return not now or (before[:1] == now[:1] and before != now)


def _follow_move(record: dict[str, Any], workspace: str) -> None:
    """Change the paths of a record if its workspace is at a new place: it has the inode and files of the old one."""
    old, new = record["roots"][0], os.path.realpath(workspace) if workspace else ""
    if not new or new == old or record.get("places", [[]])[0] != identify(new):
        return

    def move(path: str) -> str:
        return new + path.removeprefix(old) if is_inside(path, old) else path

    known = {move(path): target for path, target in record["known"].items()}
    if all(os.path.lexists(path) for path in known if is_inside(path, new)):
        record |= {name: [*map(move, record[name])] for name in ("roots", "executed", "allowed")}
        for name in ("operations", "repositories"):
            record[name] = {move(path): value for path, value in record.get(name, {}).items()}
        record |= {"known": known, "places": [identify(root) for root in record["roots"]]}
