"""recall: what the context no longer holds, read back from the archive (T9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.context import ModeName
from ollm.domain.counting import format_count
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCategory, ToolResult
from ollm.tools.files.file_text import LineRange, count_lines, render_lines
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

Number = Annotated[int, Meta(ge=1)]
Offset = Annotated[int, Meta(ge=0)]
MAX_FOUND_MESSAGES = 6
PAGE_CHARS = 4_000


class Passage(Data, frozen=True):
    """A message that mentions what was asked; `beside` is what was asked before it, or answered to it."""

    message_id: int
    role: str
    snippet: str
    beside: tuple[Passage, ...] = ()

    def __str__(self) -> str:
        said = f"message {self.message_id} ({self.role}): {self.snippet}"
        return " | ".join((said, *map(str, self.beside)))


class Archive(Protocol):
    """The session's full record, as text. None when there is nothing of that number or id."""

    async def read_message(self, number: int) -> str | None: ...

    async def read_call_output(self, call_id: str) -> str | None:
        """The whole output of a call, as much as was kept."""
        ...

    async def search(self, query: str, limit: int) -> list[Passage]: ...


class Recall(Tool[Archive], frozen=True):
    """Read what this conversation no longer shows in full. Give one of query, messageId, callId."""

    name: ClassVar[str] = "recall"
    category: ClassVar[ToolCategory] = "read"
    reads_only: ClassVar[bool] = True
    priority: ClassVar[Mapping[ModeName, int]] = {"code": 7, "debug": 7, "plan": 6, "assistant": 6}
    small: ClassVar[SmallForm] = SmallForm(
        description="Read text that was cut or folded.",
        parameters=("query", "messageId", "callId", "offset"),
        clear_name=False,
    )

    exclusive: ClassVar[tuple[str, ...]] = ("query", "messageId", "callId")

    query: Annotated[str | None, Meta(description="A question or words; add synonyms.")] = None
    message_id: Number | None = None
    call_id: Annotated[str | None, Meta(description="A tool call, for its output.")] = None
    start_line: Annotated[Number | None, Meta(description="From 1.")] = None
    end_line: Number | None = None
    offset: Annotated[Offset | None, Meta(description="Character to start at.")] = None

    def summary(self) -> str:
        if self.query is not None:
            return f"Search the conversation for “{self.query}”"
        return f"Recall call {self.call_id}" if self.call_id is not None else f"Recall message {self.message_id}"

    async def run(self, context: ToolContext, needs: Archive) -> ToolResult:
        given = [name for name, value in self._selectors.items() if value is not None]
        if len(given) != 1:
            got = "none" if not given else " and ".join(given)
            raise ToolFailure("ValidationError", f"Give exactly one of query, messageId and callId; got {got}.")
        if self.start_line and self.end_line and self.start_line > self.end_line:
            raise ToolFailure("InvalidLineRange", f"startLine {self.start_line} is after endLine {self.end_line}.")
        if self.query is not None:
            return await self._search(needs, self.query)
        if self.call_id is not None:
            return self._render_part(
                await needs.read_call_output(self.call_id), f"call {self.call_id}", context.settings.output
            )
        assert self.message_id is not None
        return self._render_part(
            await needs.read_message(self.message_id), f"message {self.message_id}", context.settings.output
        )

    @property
    def _selectors(self) -> dict[str, object]:
        return {"query": self.query, "messageId": self.message_id, "callId": self.call_id}

    def _render_part(self, text: str | None, what: str, limits: OutputSettings) -> ToolResult:
        if text is None:
            raise ToolFailure("NotFound", f"No {what} in this session.")
        if self.offset is not None:
            return render_page(text, self.offset, what)
        wanted = LineRange(first=self.start_line or 1, last=self.end_line)
        shown = render_lines(what.capitalize(), text, wanted, limits)
        lines = count_lines(shown)
        return ToolResult(
            llm_content=shown, return_display=f"{what}: 1 line" if lines == 1 else f"{what}: {lines:,} lines"
        )

    async def _search(self, archive: Archive, query: str) -> ToolResult:
        if not query.strip():
            raise ToolFailure("ValidationError", "query: expected words to look for.")
        found = await archive.search(query, MAX_FOUND_MESSAGES)
        if not found:
            raise ToolFailure("NotFound", f"No message in this session matches “{query}”.")
        return ToolResult(
            llm_content="\n".join(map(str, found)),
            return_display=f"{format_count(len(found), 'message')} for “{query}”",
        )


def render_page(text: str, offset: int, what: str) -> ToolResult:
    """A page of a text from a character on: for texts that have no lines to count by."""
    if offset >= len(text):
        raise ToolFailure(
            "InvalidLineRange", f"{what.capitalize()} has {len(text)} characters; offset {offset} is past it."
        )
    page = text[offset : offset + PAGE_CHARS]
    end = offset + len(page)
    more = f"\n[characters {offset} to {end} of {len(text)}; read on with offset {end}]" if end < len(text) else ""
    return ToolResult(llm_content=page + more, return_display=f"{what}: characters {offset:,} to {end:,}")
