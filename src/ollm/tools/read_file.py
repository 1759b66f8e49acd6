"""Read one file, or some of its lines (T2.1-2.7, T2.9)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location, Risk, ToolCategory, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.file_text import Excerpt, LineRange, append_notes, read_text
from ollm.tools.files.pictures import read_picture
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

Line = Annotated[int, Meta(ge=1)]


class ReadFile(Tool[EditLedger], frozen=True):
    """Read a text file, or the lines of it you ask for."""

    name: ClassVar[str] = "read_file"
    category: ClassVar[ToolCategory] = "read"
    risk: ClassVar[Risk] = Risk.LOW
    reads_only: ClassVar[bool] = True
    aliases: ClassVar[dict[str, str]] = {
        "file_path": "path",
        "filePath": "path",
        "file": "path",
        "filename": "path",
        "start": "startLine",
        "end": "endLine",
    }
    priority: ClassVar[Mapping[ModeName, int]] = {"code": 1, "debug": 1, "plan": 1, "assistant": 1}
    # A small window shows no line numbers: very small models ask for the first line of a file and take it for all.
    small: ClassVar[SmallForm] = SmallForm(
        description="Read a file.",
        useful_parameters=("startLine", "endLine"),
    )

    path: Annotated[str, Meta(min_length=1, description="File, from the workspace.")]
    start_line: Annotated[Line | None, Meta(description="From 1.")] = None
    end_line: Annotated[Line | None, Meta(description="Included.")] = None
    line_numbers: Annotated[bool, Meta(description="Number the lines.")] = False

    def summary(self) -> str:
        return f"Read {self.path}{self._line_range.words}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path)]

    @property
    def _line_range(self) -> LineRange:
        return LineRange(first=self.start_line or 1, last=self.end_line, numbered=self.line_numbers)

    async def run(self, context: ToolContext, needs: EditLedger) -> ToolResult:
        if self.start_line and self.end_line and self.start_line > self.end_line:
            raise ToolFailure("InvalidLineRange", f"startLine {self.start_line} is after endLine {self.end_line}.")
        with context.boundary.open_file(self.path) as file:
            if (picture := read_picture(file)) is not None and await context.sees():
                words = f"{self.path}: {picture.words}"
                return ToolResult(llm_content=f"[{words}]", return_display=words, images=(picture.part,))
            excerpt = await read_text(self.path, file, self._line_range, context.settings)
            needs.remember_file(context.boundary.check(self.path), os.fstat(file.fileno()), excerpt.content)
        return ToolResult(llm_content=append_notes(excerpt), return_display=self._render_display(excerpt))

    def _render_display(self, excerpt: Excerpt) -> str:
        count = "1 line" if excerpt.count == 1 else f"{excerpt.count:,} lines"
        return f"{self.path}: {count}" + "".join(f"; {note}" for note in excerpt.notes)
