"""Results kept as lines of JSON in the file OLLM_BENCH_LOG names: a run that was cut goes on with what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)


def kept(kind: type[Record]) -> list[Record]:
    """What the log holds already; nothing without one."""
    log = os.environ.get("OLLM_BENCH_LOG")
    if not log or not Path(log).exists():
        return []
    return [msgspec.json.decode(line, type=kind) for line in Path(log).read_bytes().splitlines()]


def keep(record: Record) -> Record:
    if log := os.environ.get("OLLM_BENCH_LOG"):
        with Path(log).open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
    return record
