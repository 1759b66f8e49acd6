"""AGENTS.md files as context: from the workspace's root down to the working directory, the nearest last (S5.6)."""

from __future__ import annotations

from pathlib import Path

from ollm.domain.context import ContextEntry
from ollm.domain.errors import OllmError
from ollm.system.paths import Boundary

NAME = "AGENTS.md"
LONGEST = 65_536  # bytes
PRIORITY = 60.0


def instruction_files(workspace: Path, directory: Path | None = None) -> list[Path]:
    """The files there are, outermost first. A directory outside the workspace counts as the workspace itself."""
    inside = directory is not None and directory.is_relative_to(workspace)
    steps = directory.relative_to(workspace).parts if inside and directory is not None else ()
    places = [workspace.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]
    return [place / NAME for place in places if (place / NAME).is_file()]


def project_instructions(boundary: Boundary, directory: Path | None = None) -> tuple[list[ContextEntry], list[str]]:
    """Entries to add, and what to tell the person about files that could not be used. Only for trusted workspaces."""
    entries: list[ContextEntry] = []
    warnings: list[str] = []
    for depth, file in enumerate(instruction_files(boundary.workspace, directory)):
        name = file.relative_to(boundary.workspace).as_posix()
        try:
            with boundary.open_file(str(file)) as opened:
                data = opened.read(LONGEST + 1)
        except (OllmError, OSError) as error:
            warnings.append(f"{name} was not used: {error}")
            continue
        if len(data) > LONGEST:
            warnings.append(f"Only the first {LONGEST // 1024} KiB of {name} are used.")
        text = _plain(data[:LONGEST])
        if text:
            entries.append(_entry(name, text, depth))
    return entries, warnings


def _entry(name: str, text: str, depth: int) -> ContextEntry:
    """Nearer files stand later, so that they have the last word; all of them stand before what the user adds."""
    return ContextEntry(key=name, content=text, timestamp="", priority=PRIORITY - depth / 100, source="system")


def _plain(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    return "".join(letter for letter in text if letter in "\n\t" or letter.isprintable()).strip()
