"""This machine, as far as ollm needs it: programs, extras, and what our own files take on the disk."""

from __future__ import annotations

from pathlib import Path

from ollm.domain.struct import Data

PROBE_BYTES = 4096  # a session of a few words
EXTRAS = {
    "acp": "acp",
    "code": "tree_sitter",
    "daemon": "litestar",
    "embedded": "xllamacpp",
    "mcp": "mcp",
    "search": "ddgs",
}


class MachineCheck(Data, frozen=True):
    """One thing this machine should have, and what it is for."""

    name: str
    ok: bool
    detail: str


class DiskUsage(Data, frozen=True):
    name: str
    bytes: int


def check_machine() -> tuple[MachineCheck, ...]:
    from importlib.util import find_spec

    from ollm.system.install_command import describe_extra_install

    programs = [
        _check_program("rg", "finds files and text"),
        _check_program("shfmt", "parses shell commands for the policy"),
    ]
    extras = [
        MachineCheck(name=f"[{extra}]", ok=find_spec(module) is not None, detail=describe_extra_install(extra))
        for extra, module in EXTRAS.items()
    ]
    return (
        *programs,
        MachineCheck(
            name="FTS5",
            ok=_has_full_text_search(),
            detail="searches sessions; needs SQLite with FTS5 in this Python",
        ),
        *extras,
    )


def _check_program(name: str, purpose: str) -> MachineCheck:
    import shutil
    import sys

    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return MachineCheck(name=name, ok=found is not None, detail=found or purpose)


def _has_full_text_search() -> bool:
    import sqlite3

    with sqlite3.connect(":memory:") as database:
        try:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
        except sqlite3.OperationalError:
            return False
    return True


def check_writable(root: Path) -> str | None:
    """Why nothing can be kept below a directory, which need not be there yet; None where something can."""
    from tempfile import TemporaryFile

    place = next((above for above in (root, *root.parents) if above.is_dir()), root)
    try:
        with TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return None


def measure_disk_usage(root: Path) -> tuple[DiskUsage, ...]:
    """By part, the largest first; links count as nothing."""
    if not root.is_dir():
        return ()
    parts = [DiskUsage(name=entry.name, bytes=_count_bytes(entry)) for entry in root.iterdir()]
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))


def _count_bytes(path: Path) -> int:
    try:
        if path.is_symlink():
            return 0
        if path.is_dir():
            return sum(_count_bytes(entry) for entry in path.iterdir())
        return path.stat().st_size
    except OSError:
        return 0
