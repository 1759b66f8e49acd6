"""A short project overview for a prompt: the upper directories with their files, the rest as counts."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, nsmallest

from ollm.domain.files import FileEntry
from ollm.domain.text import format_count, replace_unprintable

_MAX_NAMES = 12
_MAX_FOLDERS = 40
_MAX_FAILURES = 50


def render_project_map(entries: Iterable[FileEntry], max_chars: int) -> str:
    """Render the map in at most so many characters. It is deterministic, so that a prompt's prefix is stable.

    Directories are opened from the top down, largest first, as long as there is room.
    """
    root = _MapFolder("")
    for entry in entries:
        if entry.type == "file":
            root.add(entry.relative_path)
    text = root.render_text()
    waiting, failures = [(0, -root.count, "", root)], 0
    while waiting and failures < _MAX_FAILURES:
        depth, _, _, folder = heappop(waiting)
        folder.open = True
        longer = root.render_text()
        if len(longer) > max_chars:
            folder.open = False
            failures += 1
            continue
        text = longer
        for inner in folder.folders.values():
            heappush(waiting, (depth + 1, -inner.count, inner.path, inner))
    return text if len(text) <= max_chars else text[:max_chars]


class _MapFolder:
    """A directory on the map. A directory that holds only another one is joined with it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: list[str] = []
        self.folders: dict[str, _MapFolder] = {}
        self.count = 0
        self.open = False

    def add(self, relative: str) -> None:
        folder = self
        *parts, name = relative.split("/")
        folder.count += 1
        for part in parts:
            path = f"{folder.path}{part}/"
            folder = folder.folders.setdefault(part, _MapFolder(path))
            folder.count += 1
        folder.files.append(name)

    def render_text(self) -> str:
        return "\n".join(self.render_lines("", 0)) if self.open else format_count(self.count, "file")

    def render_lines(self, name: str, depth: int) -> list[str]:
        indent = "  " * depth
        if not self.open:
            return [f"{indent}{name} ({format_count(self.count, 'file')})"]
        if name and not self.files and len(self.folders) == 1:
            ((inner, folder),) = self.folders.items()
            return folder.render_lines(f"{name}{replace_unprintable(inner)}/", depth)
        lines = [f"{indent}{name}"] if name else []
        below = depth + 1 if name else depth
        for inner in sorted(self._list_fullest()):
            lines += self.folders[inner].render_lines(f"{replace_unprintable(inner)}/", below)
        if len(self.folders) > _MAX_FOLDERS:
            lines.append(
                "  " * below
                + f"… {format_count(len(self.folders) - _MAX_FOLDERS, 'more directory', 'more directories')}"
            )
        if self.files:
            lines.append("  " * below + self._render_names())
        return lines

    def _list_fullest(self) -> list[str]:
        return nsmallest(_MAX_FOLDERS, self.folders, key=lambda name: (-self.folders[name].count, name))

    def _render_names(self) -> str:
        names = sorted(self.files)
        more = f" … {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
        return " ".join(map(replace_unprintable, names[:_MAX_NAMES])) + more
