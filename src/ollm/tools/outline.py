"""Show what a file defines, or a map of the most used definitions of a directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import Location, Risk, ToolCategory, ToolResult
from ollm.tools.framework.base import SmallForm, Tool, ToolContext
from ollm.tools.search.scope import CodeNeeds, PositiveInt, find_code_files, render_with_notes, resolve_scope

if TYPE_CHECKING:
    from ollm.services.code_map.service import CodeMap

WIDE_WINDOW_TOKENS = 32_000


class Outline(Tool[CodeNeeds], frozen=True):
    """Show the classes and functions of a file with their line numbers, or a map of a directory's most used ones."""

    name: ClassVar[str] = "outline"
    category: ClassVar[ToolCategory] = "read"
    risk: ClassVar[Risk] = Risk.LOW
    reads_only: ClassVar[bool] = True
    aliases: ClassVar[dict[str, str]] = {
        "file_path": "path", "filePath": "path", "file": "path", "directory": "path", "query": "about",
    }  # fmt: skip
    priority: ClassVar[Mapping[ModeName, int]] = {"code": 10, "debug": 10, "plan": 11, "assistant": 11}
    min_window: ClassVar[int] = WIDE_WINDOW_TOKENS
    small: ClassVar[SmallForm] = SmallForm(description="Show what a file or directory defines.")

    path: Annotated[str, Meta(min_length=1)] = "."
    max_tokens: PositiveInt | None = None
    about: Annotated[str, Meta(description="For a directory: rank for this question.")] = ""

    def summary(self) -> str:
        return f"Outline {self.path}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path)]

    async def run(self, context: ToolContext, needs: CodeNeeds) -> ToolResult:
        scope = await resolve_scope(context, needs.discovery, self.path)
        most = self.max_tokens or needs.code_map.settings.max_tokens
        if scope.file is not None:
            from ollm.tools.files.code_outline import render_file_outline

            with context.open_file(self.path) as file:
                text = await render_file_outline(self.path, file, most, needs.count)
            lines = text.count("\n") + 1
            return ToolResult(llm_content=text, return_display=f"{self.path}: outline of {format_count(lines, 'line')}")
        found = await find_code_files(context, needs.discovery, scope)
        notes = [*scope.notes, *found.notes]
        room = most - sum(needs.count(f"\n[{note}]") for note in notes)
        prefix = "" if scope.root == scope.workspace else f"{scope.render_path('')}/"
        drawn = await needs.code_map.build_map(scope.root, found.paths, max(room, 1), needs.count, self.about, prefix)
        if not drawn.text:
            raise self._make_empty_failure(drawn, most)
        words = f"{self.path}: map of {format_count(drawn.files, 'file')}"
        return ToolResult(llm_content=render_with_notes([drawn.text], [*notes, *drawn.notes]), return_display=words)

    def _make_empty_failure(self, drawn: CodeMap, most: int) -> ToolFailure:
        place = "the workspace" if self.path == "." else self.path
        if drawn.has_more:
            return ToolFailure(
                "NotFound", f"No line of the map of {place} fits into {format_count(most, 'token')}; allow more."
            )
        if self.about:
            return ToolFailure("NotFound", f"No file in {place} has to do with that; ask in other words.")
        return ToolFailure("NotFound", f"No code was found in {place}. Use ls to see what there is.")
