"""Show what a file defines, or a map of the most used definitions of a directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location, Risk, ToolCategory, ToolResult
from ollm.tools.framework.base import SmallForm, Tool, ToolContext
from ollm.tools.search.code_files import CodeNeeds, find_code_files
from ollm.tools.search.scope import PositiveInt, SearchScope, render_with_notes, resolve_scope

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

    path: Annotated[str, Meta(min_length=1, description="File or directory, from the workspace.")] = "."
    max_tokens: Annotated[PositiveInt | None, Meta(description="Most tokens to return.")] = None
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
            return ToolResult(llm_content=text, return_display=f"{self.path}: outline of {lines} lines")
        found = await find_code_files(context, needs.discovery, scope)
        drawn = await needs.code_map.build_map(scope.root, found.paths, most, needs.count, self.about)
        if not drawn.text:
            place = "the workspace" if self.path == "." else self.path
            if self.about:
                raise ToolFailure("NotFound", f"No file in {place} has to do with that; ask in other words.")
            raise ToolFailure("NotFound", f"No code was found in {place}. Use ls to see what there is.")
        notes = [*scope.notes, *found.notes, *drawn.notes]
        words = f"{self.path}: map of {drawn.files:,} files"
        return ToolResult(
            llm_content=render_with_notes([_prefix_paths(drawn.text, scope)], notes), return_display=words
        )


def _prefix_paths(text: str, scope: SearchScope) -> str:
    """Paths as the model may use them again."""
    if scope.root == scope.workspace:
        return text
    return "\n".join(line if line.startswith(" ") else _prefix_path(line, scope) for line in text.split("\n"))


def _prefix_path(line: str, scope: SearchScope) -> str:
    """`shop/cart.py`, or `shop/: cart.py mail.py` for several of a directory."""
    folder, mark, names = line.partition("/: ")
    return f"{scope.render_path(folder)}{mark}{names}" if mark else scope.render_path(line)
