"""AGENTS.md files as context: from the workspace's root down to the working directory, the nearest last (S5.6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ollm.domain.context import ContextEntry
from ollm.domain.errors import OllmError
from ollm.system.paths import Boundary
from ollm.system.terminal_text import strip_controls

FILE_NAME = "AGENTS.md"
MAX_FILE_BYTES = 65_536  # bytes
MAX_OUTLINE_HEADINGS = 24
PRIORITY = 60.0


def find_instruction_files(workspace: Path, directory: Path | None = None) -> list[Path]:
    """The files there are, outermost first. A directory outside the workspace counts as the workspace itself."""
    inside = directory is not None and directory.is_relative_to(workspace)
    steps = directory.relative_to(workspace).parts if inside and directory is not None else ()
    places = [workspace.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]
    return [place / FILE_NAME for place in places if (place / FILE_NAME).is_file()]


def read_project_instructions(
    boundary: Boundary, directory: Path | None = None
) -> tuple[list[ContextEntry], list[str]]:
    """Entries to add, and what to tell the person about files that could not be used. Only for trusted workspaces."""
    entries: list[ContextEntry] = []
    warnings: list[str] = []
    for depth, file in enumerate(find_instruction_files(boundary.workspace, directory)):
        name = file.relative_to(boundary.workspace).as_posix()
        try:
            with boundary.open_file(str(file)) as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
        except (OllmError, OSError) as error:
            warnings.append(f"Skipped {name}: {error}")
            continue
        if len(data) > MAX_FILE_BYTES:
            warnings.append(f"Using only the first {MAX_FILE_BYTES // 1024} KiB of {name}.")
        text = _decode_text(data[:MAX_FILE_BYTES])
        if text:
            entries.append(_build_entry(name, text, depth))
    return entries, warnings


def _build_entry(name: str, text: str, depth: int) -> ContextEntry:
    """Nearer files are later, so that they have the last word; all of them are before what the user adds."""
    return ContextEntry(key=name, content=text, timestamp="", priority=PRIORITY - depth / 100, source="system")


def _decode_text(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    return strip_controls(text).strip()


def shorten_instructions(entry: ContextEntry, tokens: int, cost: Callable[[str], int]) -> ContextEntry | None:
    """A file that is too long as its beginning and the headings of the rest; None where not even that has room."""
    lines = entry.content.splitlines()
    for kept in (64, 32, 16, 8, 4, 2):
        rest = [line.strip() for line in lines[kept:] if line.startswith("#")][:MAX_OUTLINE_HEADINGS]
        told = f"[{len(lines) - kept} more lines; read {entry.key} for them" + (". They are about:]" if rest else "]")
        shown = msgspec.structs.replace(entry, content="\n".join((*lines[:kept], told, *rest)))
        if len(lines) > kept and cost(shown.content) <= tokens:
            return shown
    return None
