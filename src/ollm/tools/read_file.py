"""Read one file, or some of its lines (T2.1-2.7, T2.9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.domain.messages import JsonObject
from ollm.domain.text import format_count
from ollm.domain.tools import ToolResult
from ollm.tools.files.file_text import Excerpt, LineRange, read_picture, read_text
from ollm.tools.framework.base import PATH_ALIASES, Count, SmallForm, Text, Tool, ToolContext

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices


class ReadFile(Tool["ToolServices"], frozen=True):
    """Read a text file, or lines of it."""

    name: ClassVar = "read_file"
    category: ClassVar = "read"
    aliases: ClassVar = {
        **PATH_ALIASES, "start": "startLine", "end": "endLine", "function": "symbol", "class": "symbol",
    }  # fmt: skip
    priority: ClassVar = {"code": 1, "debug": 1, "plan": 1, "assistant": 1}
    # A small window shows no line numbers: very small models ask for the first line of a file and take it for all.
    small: ClassVar = SmallForm(description="Read a file.", useful_parameters=("startLine", "endLine"))

    path: Text
    start_line: Count | None = None
    end_line: Annotated[Count | None, Meta(description="Included.")] = None
    line_numbers: bool = False
    symbol: Annotated[str | None, Meta(description="Such as Turn.run.")] = None

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject:
        """Look for a symbol without a path in the whole workspace."""
        return {"path": ".", **arguments} if arguments.get("symbol") else arguments

    def summary(self) -> str:
        return f"Read {self.symbol} in {self.path}" if self.symbol else f"Read {self.path}{self._line_range.words}"

    @property
    def _line_range(self) -> LineRange:
        return LineRange(first=self.start_line or 1, last=self.end_line, numbered=self.line_numbers)

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        if self.symbol:
            return await self._read_symbol(self.symbol, context, needs)
        with context.open_file(self.path) as file:
            if (picture := read_picture(file)) is not None and await context.sees():
                words = f"{self.path}: {picture[0]}"
                return ToolResult(llm_content=f"[{words}]", return_display=words, images=(picture[1],))
            excerpt = await read_text(self.path, file, self._line_range, context.settings, needs.edits)
        display = "; ".join([f"{self.path}: {format_count(excerpt.count, 'line')}", *excerpt.notes])
        result = ToolResult(llm_content=excerpt.render(), return_display=display)
        return await self._shorten_file(excerpt, result, context, needs)

    async def _shorten_file(
        self, excerpt: Excerpt, result: ToolResult, context: ToolContext, needs: ToolServices
    ) -> ToolResult:
        """Replace a file that is too long with its head and the outline of the rest."""
        if excerpt.content is None or not self._line_range.whole:
            return result
        most = needs.get_result_tokens()
        is_cut = any("read on with startLine" in note for note in excerpt.notes)
        if not is_cut and (most is None or needs.count_tokens(result.llm_content) <= most):
            return result
        from ollm.tools.outline import replace_rest

        limits = context.settings.output
        return await asyncio.to_thread(replace_rest, self.path, excerpt.content, result, limits, most, needs)

    async def _read_symbol(self, symbol: str, context: ToolContext, needs: ToolServices) -> ToolResult:
        from ollm.tools.outline import find_symbol_file, find_symbol_lines

        if context.boundary.check(self.path).is_dir():
            place = await find_symbol_file(context, needs, self.path, symbol)
            return await msgspec.structs.replace(self, path=place).run(context, needs)
        with context.open_file(self.path) as file:
            lines, others = await find_symbol_lines(self.path, file, symbol, numbered=self.line_numbers)
            excerpt = await read_text(self.path, file, lines, context.settings, needs.edits)
        more = f"; there is also {others}" if others else ""
        head = f"[{self.path}{lines.words}{more}]\n"
        words = f"{symbol} in {self.path}{lines.words}"
        return ToolResult(llm_content=head + excerpt.render(), return_display=words)
