"""List a directory (T4.9-4.12)."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from ollm.domain.files import DiscoveryOptions, FileEntry
from ollm.domain.struct import Data
from ollm.domain.tools import ToolResult
from ollm.system.paths import show_name
from ollm.tools.framework.base import Count, SmallForm, Tool, ToolContext
from ollm.tools.framework.output import append_notes
from ollm.tools.search.scope import (
    DirectoryPath,
    SearchScope,
    render_link,
    resolve_scope,
)

if TYPE_CHECKING:
    from ollm.services.file_discovery.service import FileDiscoveryService

MAX_ENTRIES_SHOWN = 200
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


class Ls(Tool["FileDiscoveryService"], frozen=True):
    """List a directory with sizes; recursive shows it as a tree. Ignored files are left out."""

    name: ClassVar = "ls"
    category: ClassVar = "read"
    aliases: ClassVar = {"directory": "path", "dir": "path", "depth": "maxDepth"}
    priority: ClassVar = {"plan": 4, "assistant": 7}
    small: ClassVar = SmallForm(description="List a directory.", parameters=("path",))

    path: DirectoryPath = "."
    recursive: bool = False
    max_depth: Annotated[Count | None, Meta(description="How many levels.")] = None
    include_hidden: Annotated[bool, Meta(description="Also names that start with a dot.")] = False

    def summary(self) -> str:
        return f"List {self.path}" + (" and what is below" if self.recursive else "")

    async def run(self, context: ToolContext, needs: FileDiscoveryService) -> ToolResult:
        scope = await resolve_scope(context, needs, self.path)
        if scope.file is not None:
            return _report_file(scope, scope.file)
        depth = (self.max_depth or context.settings.max_depth) if self.recursive else 0
        answer = await needs.collect_result(
            DiscoveryOptions(
                root=str(scope.root),
                within=scope.within,
                max_depth=depth + 1,
                hidden=self.include_hidden,
                directories=True,
            )
        )
        links = tuple(FileEntry(str(scope.root), path, "link") for path in answer.links)
        children = _group_by_parent(answer.entries + links)
        tree = _DirectoryTree(scope=scope, depth=depth, children=children, unreadable=set(answer.unreadable))
        lines = tree.render_lines("", 0) or ["(empty)"]
        notes = [*scope.notes, *(["the directory cannot be read"] if "." in answer.unreadable else [])]
        count = f"{len(tree.children[''])} entries" if len(tree.children[""]) != 1 else "1 entry"
        return ToolResult(llm_content=append_notes("\n".join(lines), notes), return_display=f"{self.path}: {count}")


class _DirectoryTree(Data, frozen=True):
    """The entries of a directory by parent, and their rendering."""

    scope: SearchScope
    depth: int
    children: dict[str, list[FileEntry]]
    unreadable: set[str]

    def render_lines(self, parent: str, depth: int) -> list[str]:
        written: list[str] = []
        entries = self.children.get(parent, [])
        for entry in entries[:MAX_ENTRIES_SHOWN]:
            name = show_name(entry.relative_path.rpartition("/")[2])
            written.append(
                "  " * depth
                + (self._render_folder(name, entry, depth) if _is_folder(entry) else self._render_file(name, entry))
            )
            if _is_folder(entry) and depth < self.depth:
                written += self.render_lines(entry.relative_path, depth + 1)
        if rest := len(entries[MAX_ENTRIES_SHOWN:]):
            written.append("  " * depth + f"… {rest:,} more")
        return written

    def _render_folder(self, name: str, entry: FileEntry, depth: int) -> str:
        if entry.relative_path in self.unreadable:
            return f"{name}/  (cannot be read)"
        if depth < self.depth:
            return f"{name}/"
        inside = len(self.children.get(entry.relative_path, []))
        return f"{name}/  ({'empty' if not inside else f'{inside:,} inside'})"

    def _render_file(self, name: str, entry: FileEntry) -> str:
        if entry.type == "link":
            return render_link(name, entry.path)
        try:
            return f"{name}  {format_size(os.lstat(entry.path).st_size)}"
        except OSError:
            return f"{name}  (gone)"


def _group_by_parent(entries: tuple[FileEntry, ...]) -> dict[str, list[FileEntry]]:
    """Group entries by parent, directories before files, each sorted by name."""
    children: dict[str, list[FileEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (not _is_folder(entry), entry.relative_path)):
        children[entry.relative_path.rpartition("/")[0]].append(entry)
    return children


def _is_folder(entry: FileEntry) -> bool:
    return entry.type == "directory"


def _report_file(scope: SearchScope, name: str) -> ToolResult:
    size = format_size((scope.root / name).stat().st_size)
    line = f"{scope.render_path(name)}  {size}"
    return ToolResult(llm_content=append_notes(line, scope.notes), return_display=line)


def format_size(size: int) -> str:
    """Format a size as `512 B`, `1.5 KB` or `20 MB`: two or three digits, in steps of 1,024."""
    if size < 1024:
        return f"{size} B"
    power = min(int(math.log(size + 0.5, 1024)), 5)
    amount = size / 1024**power
    return f"{amount:.1f} {_UNITS[power]}" if amount < 9.95 else f"{amount:.0f} {_UNITS[power]}"
