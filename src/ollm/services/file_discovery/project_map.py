"""A short project overview for a prompt: the upper directories with their files, the rest as counts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from ollm.domain.files import FileEntry
from ollm.domain.text import format_count, replace_unprintable

_MAX_NAMES = 12


def render_project_map(entries: Iterable[FileEntry], max_chars: int) -> str:
    """Render as many levels of directories as fit into so many characters. It is deterministic, so that a prompt's
    prefix is stable."""
    paths = [replace_unprintable(entry.relative_path) for entry in entries if entry.type == "file"]
    text = format_count(len(paths), "file") if paths else ""
    for depth in range(max((path.count("/") for path in paths), default=-1) + 1):
        deeper = "\n".join(_render_folders(paths, depth))
        if len(deeper) > max_chars:
            break
        text = deeper
    return text[:max_chars]


def _render_folders(paths: list[str], depth: int) -> Iterable[str]:
    """Render a line for each directory down to a depth, with its files. Those below it are counted."""

    def cut(path: str) -> str:
        return "".join(f"{name}/" for name in path.split("/")[:-1][: depth + 1])

    for folder, inside in groupby(sorted(paths, key=lambda path: (cut(path), path)), cut):
        files = list(inside)
        if folder.count("/") > depth:
            yield f"{folder} ({format_count(len(files), 'file')})"
            continue
        names = " ".join(path.rpartition("/")[2] for path in files[:_MAX_NAMES])
        more = f" … {len(files) - _MAX_NAMES:,} more" if len(files) > _MAX_NAMES else ""
        yield f"{folder}: {names}{more}".removeprefix(": ")
