"""Find files by pattern (T4.1-4.4, T4.12)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import ToolResult
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


class Glob(Tool["FileDiscoveryService"], frozen=True):
    """Find files by name, such as src/**/*.py. Ignored files are left out."""

    name: ClassVar = "glob"
    category: ClassVar = "read"
    aliases: ClassVar = {
        "glob": "pattern",
        "query": "pattern",
        "directory": "path",
        "limit": "maxResults",
    }
    priority: ClassVar = {"code": 6, "debug": 6, "plan": 3, "assistant": 3}
    small: ClassVar = SmallForm(description="Find files by name, such as **/*.py.")

    pattern: Annotated[str, Meta(min_length=1, description="Glob from path; ** is any directories.")]
    path: DirectoryPath = "."
    max_results: Count | None = None
    include_hidden: bool = False
    sort: Literal["path", "newest"] = "path"

    def summary(self) -> str:
        return f"Find files matching {self.pattern}" + ("" if self.path == "." else f" in {self.path}")

    async def run(self, context: ToolContext, needs: FileDiscoveryService) -> ToolResult:
        scope = await resolve_scope(context, needs, self.path)
        if scope.file is not None:
            raise ToolFailure("ValidationError", f"path: {self.path} is a file; name a directory.")
        pattern = self._relativize_pattern(scope)
        found = await needs.find(str(scope.root), pattern, within=scope.within, links=True)
        shown = [path for path in found.paths if self.include_hidden or not (path.startswith(".") or "/." in path)]
        notes = [*scope.notes, *found.notes]
        if found.anywhere and shown:
            notes.append(f"none directly in {self.path}; searched **/{pattern}")
        if hidden := len(found.paths) - len(shown):
            notes.append(f"{hidden:,} hidden {'path matches' if hidden == 1 else 'paths match'} too; set includeHidden")
        lines = self._render_paths(scope, shown, found.links, notes, self.max_results or context.settings.max_results)
        return ToolResult(
            llm_content=append_notes("\n".join(lines), notes),
            return_display=f"{format_count(len(shown), 'file')} matching {self.pattern}",
        )

    def _relativize_pattern(self, scope: SearchScope) -> str:
        """Make an absolute pattern below the root relative. Raises ToolFailure if it leads outside."""
        pattern = self.pattern.removeprefix(f"{scope.root}/")
        if ".." in pattern.split("/"):
            raise ToolFailure("InvalidPattern", f"The glob {self.pattern!r} contains ..; set path instead.")
        if pattern.startswith("/"):
            raise ToolFailure("OutsideWorkspace", f"The glob {self.pattern!r} is not below {scope.root}.")
        return pattern

    def _render_paths(
        self, scope: SearchScope, paths: list[str], links: frozenset[str], notes: list[str], most: int
    ) -> list[str]:
        ordered = sorted(paths) if self.sort == "path" else sorted(paths, key=lambda path: _make_age_key(scope, path))
        if rest := len(ordered[most:]):
            notes.append(f"{rest:,} more; narrow the pattern or raise maxResults")
        return [
            render_link(scope.render_path(path), f"{scope.root}/{path}") if path in links else scope.render_path(path)
            for path in ordered[:most]
        ] or [f"No files match {self.pattern}."]


def _make_age_key(scope: SearchScope, path: str) -> tuple[float, str]:
    """Sort by newest first, then by path. Missing files come last."""
    try:
        return -os.lstat(scope.root / path).st_mtime, path
    except OSError:
        return float("inf"), path
