"""web_search (T6.6, T6.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.config.settings import WebSearchSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.tools import Risk, ToolResult
from ollm.tools.framework.base import Tool, ToolContext
from ollm.tools.framework.output import clean
from ollm.tools.web.search_backends import SearchBackend, SearchHit, backend_of

SNIPPET = 300
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


class Search(Data, frozen=True):
    """What searching takes: the key of the configured service, and backends that extensions bring."""

    key: str | None = None
    others: Mapping[str, SearchBackend] = {}

    def backend(self, settings: WebSearchSettings) -> SearchBackend:
        return backend_of(settings, self.key, self.others)


class WebSearch(Tool[Search], frozen=True):
    """Search the web; read what looks right with web_fetch."""

    name: ClassVar[str] = "web_search"
    risk: ClassVar[Risk] = Risk.MEDIUM
    reads_only: ClassVar[bool] = True
    aliases: ClassVar[dict[str, str]] = {"q": "query", "count": "numResults", "maxResults": "numResults"}

    query: Annotated[str, Meta(min_length=1, description="What to look for.")]
    num_results: Annotated[Annotated[int, Meta(ge=1, le=50)] | None, Meta(description="How many results.")] = None

    def summary(self) -> str:
        return f"Search the web for “{self.query}”"

    async def preview(self, context: ToolContext, needs: Search) -> str:
        """Nothing to show, but without a backend nobody needs to be asked."""
        needs.backend(context.settings.web_search)
        return ""

    async def run(self, context: ToolContext, needs: Search) -> ToolResult:
        if not self.query.strip():
            raise ToolFailure("ValidationError", "query: expected what to look for.")
        settings = context.settings.web_search
        hits = await needs.backend(settings).search(self.query, self.num_results or settings.num_results)
        if not hits:
            raise ToolFailure("NotFound", f"Nothing was found for “{self.query}”.")
        text = "\n\n".join(f"{number}. {_shown(hit)}" for number, hit in enumerate(hits, 1))
        return ToolResult(llm_content=text, return_display=f"{len(hits)} results for “{self.query}”")


def _shown(hit: SearchHit) -> str:
    snippet = _plain(hit.snippet)
    short = snippet if len(snippet) <= SNIPPET else snippet[:SNIPPET].rstrip() + "…"
    return "\n   ".join(line for line in (_plain(hit.title), clean(hit.url)[:500], short) if line)


def _plain(text: str) -> str:
    """One line without tags, entities and control characters."""
    return " ".join(clean(unescape(_TAG.sub("", text))).split())
