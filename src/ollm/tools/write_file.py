"""Write a whole file (T3.1-3.4, T3.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import FileChange, Location, Risk, ToolCategory, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.file_change import (
    CurrentFile,
    describe_broken_change,
    encode_text,
    make_diff,
    make_result,
    read_current,
    refuse_stale,
    write_change,
)
from ollm.tools.files.file_text import Encoding, count_lines, detect_newline
from ollm.tools.framework.base import SmallForm, Tool, ToolContext


class WriteFile(Tool[EditLedger], frozen=True):
    """Create a file with this content, parent directories too. An existing one is replaced only with overwrite."""

    name: ClassVar[str] = "write_file"
    category: ClassVar[ToolCategory] = "write"
    risk: ClassVar[Risk] = Risk.MEDIUM
    aliases: ClassVar[dict[str, str]] = {
        "file_path": "path",
        "filePath": "path",
        "file": "path",
        "filename": "path",
        "contents": "content",
        "text": "content",
    }
    priority: ClassVar[Mapping[ModeName, int]] = {"code": 3, "debug": 5}
    # A small window does not show `overwrite`: very small models overwrite what they should add to.
    small: ClassVar[SmallForm] = SmallForm(
        description="Create a new file.",
        useful_parameters=("overwrite",),
    )

    path: Annotated[str, Meta(min_length=1)]
    content: str
    overwrite: bool = False

    def summary(self) -> str:
        return f"{'Replace' if self.overwrite else 'Create'} {self.path} ({self._count_lines()})"

    def locations(self) -> list[Location]:
        return [Location(target=self.path, access="write")]

    async def preview(self, context: ToolContext, needs: EditLedger) -> str:
        before = self._read_before(context)
        return make_diff(self.path, before.text if before else "", self.content)

    async def list_changes(self, context: ToolContext, needs: EditLedger) -> tuple[FileChange, ...]:
        before = self._read_before(context)
        return (FileChange(path=self.path, before=before.text if before else None, after=self.content),)

    async def run(self, context: ToolContext, needs: EditLedger) -> ToolResult:
        before = self._read_before(context)
        if before is not None:
            refuse_stale(context, needs, self.path, before)
        after = self._encode_content(before)
        await write_change(context, needs, self.path, before.content if before else None, after)
        done = "Replaced" if before else "Created"
        summary = f"{done} {self.path}: {self._count_lines()}, {format_count(len(after), 'byte')}."
        summary += describe_broken_change(context, self.path, before.text if before else None, self.content)
        return make_result(summary, make_diff(self.path, before.text if before else "", self.content))

    def _count_lines(self) -> str:
        return format_count(count_lines(self.content), "line")

    def _read_before(self, context: ToolContext) -> CurrentFile | None:
        if self.path.endswith("/"):
            raise ToolFailure("IsDirectory", f"{self.path} is a directory; give a file name.")
        before = read_current(context, self.path)
        if before is not None and not self.overwrite:
            raise ToolFailure(
                "FileExists", f"{self.path} exists, and overwrite is not set. Read it, then change it with edit_file."
            )
        return before

    def _encode_content(self, before: CurrentFile | None) -> bytes:
        """The content in the encoding and with the line ends the file had."""
        kept = before.encoding if before is not None and before.content else None
        encoding = kept if kept is not None and kept.exact else Encoding()
        text = self.content
        if before is not None and "\r" not in text and detect_newline(before.text) == "\r\n":
            text = text.replace("\n", "\r\n")
        return encode_text(self.path, text, encoding)
