"""Search the web (T6.6, T6.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.config.settings import WebSearchSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.text import format_count, shorten_line
from ollm.domain.tools import FileChange, Risk, ToolResult
from ollm.tools.framework.base import SmallForm, Tool, ToolContext
from ollm.tools.framework.output import clean_text, disarm_template_marks
from ollm.tools.web.search_backends import SearchBackend, SearchHit, select_backend

MAX_SNIPPET_CHARS = 300
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


class WebSearchNeeds(Data, frozen=True):
    """Dependencies of a search: the key of the configured service, and backends from extensions."""

    key: str | None = None
    others: Mapping[str, SearchBackend] = {}

    def get_backend(self, settings: WebSearchSettings) -> SearchBackend:
        return select_backend(settings, self.key, self.others)


class WebSearch(Tool[WebSearchNeeds], frozen=True):
    """Search the web; read what looks right with web_fetch."""

    name: ClassVar = "web_search"
    category: ClassVar = "web"
    risk: ClassVar = Risk.MEDIUM
    aliases: ClassVar = {"q": "query", "count": "numResults", "maxResults": "numResults"}
    priority: ClassVar = {"plan": 9, "assistant": 4}
    small: ClassVar = SmallForm(description="Search the web.")

    query: Annotated[str, Meta(min_length=1, description="What to look for.")]
    num_results: Annotated[Annotated[int, Meta(ge=1, le=50)] | None, Meta(description="How many results.")] = None

    def summary(self) -> str:
        return f"Search the web for “{self.query}”"

    async def list_changes(self, context: ToolContext, needs: WebSearchNeeds) -> tuple[FileChange, ...]:
        """List no changes, but raise without a backend before the person is asked."""
        needs.get_backend(context.settings.web_search)
        return ()

    async def run(self, context: ToolContext, needs: WebSearchNeeds) -> ToolResult:
        if not self.query.strip():
            raise ToolFailure("ValidationError", "query: expected what to look for.")
        settings = context.settings.web_search
        hits = await needs.get_backend(settings).search(self.query, self.num_results or settings.num_results)
        if not hits:
            raise ToolFailure("NotFound", f"No results for “{self.query}”.")
        text = "\n\n".join(f"{number}. {_render_hit(hit)}" for number, hit in enumerate(hits, 1))
        display = f"{format_count(len(hits), 'result')} for “{self.query}”"
        return ToolResult(llm_content=disarm_template_marks(text), return_display=display)


def _render_hit(hit: SearchHit) -> str:
    short = shorten_line(_clean_line(hit.snippet), MAX_SNIPPET_CHARS)
    return "\n   ".join(line for line in (_clean_line(hit.title), clean_text(hit.url)[:500], short) if line)


def _clean_line(text: str) -> str:
    """Reduce text to one line without tags, entities and control characters."""
    from html import unescape

    return " ".join(clean_text(unescape(_TAG.sub("", text))).split())
