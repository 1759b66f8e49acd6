"""Write a whole file (T3.1-3.4, T3.8)."""

from __future__ import annotations

from typing import ClassVar

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.tools.files.file_change import CurrentFile, FileChangingTool, NewContent, encode_text, read_current
from ollm.tools.files.file_text import Encoding, count_lines, detect_newline
from ollm.tools.framework.base import PATH_ALIASES, SmallForm, ToolContext


class WriteFile(FileChangingTool, frozen=True):
    """Create a file with this content, parent directories too. An existing one is replaced only with overwrite."""

    name: ClassVar = "write_file"
    aliases: ClassVar = {**PATH_ALIASES, "contents": "content", "text": "content"}
    priority: ClassVar = {"code": 3, "debug": 5}
    # A small window does not show `overwrite`: very small models overwrite what they should add to.
    small: ClassVar = SmallForm(description="Create a new file.", useful_parameters=("overwrite",))

    content: str
    overwrite: bool = False

    def summary(self) -> str:
        return f"{'Replace' if self.overwrite else 'Create'} {self.path} ({self._count_lines()})"

    def read_before(self, context: ToolContext) -> CurrentFile | None:
        if self.path.endswith("/"):
            raise ToolFailure("IsDirectory", f"{self.path} is a directory; give a file name.")
        before = read_current(context, self.path)
        if before is not None and not self.overwrite:
            raise ToolFailure(
                "FileExists", f"{self.path} exists, and overwrite is not set. Read it, then change it with edit_file."
            )
        return before

    def make_content(self, before: CurrentFile | None) -> NewContent:
        """Build the content with the file's previous encoding and line ends."""
        kept = before.encoding if before is not None and before.content else None
        encoding = kept if kept is not None and kept.exact else Encoding()
        text = self.content
        if before is not None and "\r" not in text and detect_newline(before.text) == "\r\n":
            text = text.replace("\n", "\r\n")
        content = encode_text(self.path, text, encoding)
        done = "Replaced" if before else "Created"
        summary = f"{done} {self.path}: {self._count_lines()}, {format_count(len(content), 'byte')}."
        return NewContent(text=self.content, content=content, summary=summary)

    def _count_lines(self) -> str:
        return format_count(count_lines(self.content), "line")
