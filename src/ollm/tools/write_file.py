"""write_file (T3.1-3.4, T3.8)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Location, Risk, ToolResult
from ollm.services.edit_ledger import EditLedger
from ollm.tools.files.encoding import Encoding, newline_of
from ollm.tools.files.file_change import Standing, changed, diff_of, encoded, put, refuse_stale, standing
from ollm.tools.files.file_text import lines_in
from ollm.tools.framework.base import Tool, ToolContext


class WriteFile(Tool[EditLedger], frozen=True):
    """Create a file with this content, parent directories too. An existing one is replaced only with overwrite."""

    name: ClassVar[str] = "write_file"
    risk: ClassVar[Risk] = Risk.MEDIUM
    aliases: ClassVar[dict[str, str]] = {
        "file_path": "path",
        "filePath": "path",
        "file": "path",
        "filename": "path",
        "contents": "content",
        "text": "content",
    }

    path: Annotated[str, Meta(min_length=1, description="File, from the workspace.")]
    content: Annotated[str, Meta(description="The whole text.")]
    overwrite: Annotated[bool, Meta(description="Replace the file if it exists.")] = False

    def summary(self) -> str:
        return f"{'Replace' if self.overwrite else 'Create'} {self.path} ({lines_in(self.content):,} lines)"

    def locations(self) -> list[Location]:
        return [Location(target=self.path, access="write")]

    async def preview(self, context: ToolContext, needs: EditLedger) -> str:
        before = self._before(context)
        return diff_of(self.path, before.text if before else "", self.content)

    async def run(self, context: ToolContext, needs: EditLedger) -> ToolResult:
        before = self._before(context)
        if before is not None:
            refuse_stale(context, needs, self.path, before)
        after = self._bytes(before)
        put(context, needs, self.path, before.content if before else None, after)
        done = "Replaced" if before else "Created"
        lines = lines_in(self.content)
        count = "1 line" if lines == 1 else f"{lines:,} lines"
        summary = f"{done} {self.path}: {count}, {len(after):,} bytes."
        return changed(summary, diff_of(self.path, before.text if before else "", self.content))

    def _before(self, context: ToolContext) -> Standing | None:
        if self.path.endswith("/"):
            raise ToolFailure("IsDirectory", f"{self.path} names a directory; give the file's name.")
        before = standing(context, self.path)
        if before is not None and not self.overwrite:
            raise ToolFailure(
                "FileExists", f"{self.path} exists, and overwrite is not set. Read it, then change it with edit_file."
            )
        return before

    def _bytes(self, before: Standing | None) -> bytes:
        """The content in the encoding and with the line ends the file had."""
        kept = before.encoding if before is not None and before.content else None
        encoding = kept if kept is not None and kept.exact else Encoding()
        text = self.content
        if before is not None and "\r" not in text and newline_of(before.text) == "\r\n":
            text = text.replace("\n", "\r\n")
        return encoded(self.path, text, encoding)
