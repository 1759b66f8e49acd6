"""recall: content that has left the context, read back from the archive (T9.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count, shorten_line
from ollm.domain.tools import ToolResult
from ollm.tools.files.file_text import LineRange, count_lines, render_lines
from ollm.tools.framework.base import Count, SmallForm, Tool, ToolContext

if TYPE_CHECKING:
    from ollm.services.message_search.session_archive import SessionArchive

MAX_FOUND_MESSAGES = 6
MAX_QUERIES = 5
PAGE_CHARS = 4_000
SHOWN_QUERY_CHARS = 100


class Recall(Tool["SessionArchive"], frozen=True):
    """Read what this conversation no longer shows in full. Give one of queries, messageId, callId."""

    name: ClassVar = "recall"
    category: ClassVar = "read"
    priority: ClassVar = {"code": 7, "debug": 7, "plan": 6, "assistant": 6}
    small: ClassVar = SmallForm(
        description="Read text that was cut or folded.",
        parameters=("queries", "messageId", "callId", "offset"),
        clear_name=False,
    )

    exclusive: ClassVar = ("queries", "messageId", "callId")
    aliases: ClassVar = {"query": "queries"}

    queries: Annotated[
        Annotated[tuple[str, ...], Meta(max_length=MAX_QUERIES)] | None,
        Meta(description="A few words each: synonyms, other languages."),
    ] = None
    message_id: Count | None = None
    call_id: Annotated[str | None, Meta(description="A tool call, for its output.")] = None
    start_line: Count | None = None
    end_line: Count | None = None
    offset: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="Character to start at.")] = None

    def summary(self) -> str:
        if self.queries is not None:
            return f"Search the conversation for {self._quote_queries()}"
        return f"Recall call {self.call_id}" if self.call_id is not None else f"Recall message {self.message_id}"

    async def run(self, context: ToolContext, needs: SessionArchive) -> ToolResult:
        selectors = {"queries": self.queries, "messageId": self.message_id, "callId": self.call_id}
        given = [name for name, value in selectors.items() if value is not None]
        if len(given) != 1:
            got = "none" if not given else " and ".join(given)
            raise ToolFailure("ValidationError", f"Give exactly one of queries, messageId and callId; got {got}.")
        if self.queries is not None:
            return await self._search(needs, self.queries)
        if self.call_id is not None:
            what, text = f"call {self.call_id}", await needs.read_call_output(self.call_id)
        else:
            what, text = f"message {self.message_id}", await needs.read_message(self.message_id or 0)
        if text is None:
            raise ToolFailure("NotFound", f"No {what} in this session.")
        if self.offset is not None:
            return render_page(text, self.offset, what)
        wanted = LineRange(first=self.start_line or 1, last=self.end_line)
        shown = render_lines(what.capitalize(), text, wanted, context.settings.output)
        return ToolResult(llm_content=shown, return_display=f"{what}: {format_count(count_lines(shown), 'line')}")

    def _quote_queries(self) -> str:
        return ", ".join(f"“{shorten_line(query, SHOWN_QUERY_CHARS)}”" for query in self.queries or ())

    async def _search(self, archive: SessionArchive, queries: Sequence[str]) -> ToolResult:
        wanted = [query for query in queries if query.strip()]
        if not wanted:
            raise ToolFailure("ValidationError", "queries: expected words to look for.")
        found, complete = await archive.search(wanted, MAX_FOUND_MESSAGES)
        notes = [] if complete else ["[The newest messages are not indexed yet: search again for those.]"]
        if not found:
            told = f"No message in this session matches {self._quote_queries()}. Try other words for it."
            raise ToolFailure("NotFound", " ".join([told, *notes]))
        beside = [passage.beside for passage in found if passage.beside]
        return ToolResult(
            llm_content="\n".join([*map(str, found), *beside, *notes]),
            return_display=f"{format_count(len(found), 'message')} for {self._quote_queries()}",
        )


def render_page(text: str, offset: int, what: str) -> ToolResult:
    """Render a page of a text from a character offset, for texts without lines to count by."""
    if offset >= len(text):
        raise ToolFailure(
            "InvalidLineRange", f"{what.capitalize()} has {len(text)} characters; offset {offset} is past it."
        )
    page = text[offset : offset + PAGE_CHARS]
    end = offset + len(page)
    more = f"\n[characters {offset} to {end} of {len(text)}; read on with offset {end}]" if end < len(text) else ""
    return ToolResult(llm_content=page + more, return_display=f"{what}: characters {offset:,} to {end:,}")
