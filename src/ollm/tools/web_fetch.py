"""Fetch a web page as text (T6.1-6.5, T6.8)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import FileChange, Location, Risk, ToolResult
from ollm.tools.framework.base import Count, SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import clean_text, disarm_template_marks, trim_output
from ollm.tools.web.address import parse_url, refuse_private
from ollm.tools.web.client import fetch_url
from ollm.tools.web.page import extract_text

ACCEPTED_TYPES = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5"


class WebFetch(Tool[None], frozen=True):
    """Fetch a web page as Markdown, or the parts of it a CSS selector picks. JSON, plain text and PDFs work too."""

    name: ClassVar = "web_fetch"
    category: ClassVar = "web"
    risk: ClassVar = Risk.MEDIUM
    aliases: ClassVar = {"uri": "url", "link": "url", "max_length": "maxLength"}
    priority: ClassVar = {"plan": 10, "assistant": 5}
    small: ClassVar = SmallForm(description="Read a web page.")

    url: Annotated[str, Meta(min_length=1, description="Address, http or https.")]
    selector: Annotated[Text | None, Meta(description="CSS selector.")] = None
    max_length: Annotated[Count | None, Meta(description="Most characters to return.")] = None

    def summary(self) -> str:
        return f"Fetch {self.url}"

    def locations(self) -> list[Location]:
        return [Location(target=self.url)]

    async def list_changes(self, context: ToolContext, needs: None) -> tuple[FileChange, ...]:
        """List no changes, but raise for a refused address before the person is asked."""
        target = parse_url(self.url)
        if literal := target.literal_address:
            refuse_private(target, [literal], context.settings.web_fetch.allow_private)
        return ()

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        settings = context.settings.web_fetch
        answer = await fetch_url(self.url, settings, headers={"Accept": ACCEPTED_TYPES}, same_host=True)
        if answer.status >= 400:
            raise ToolFailure("HttpError", f"{answer.url} answered {answer.reason}.")
        text = disarm_template_marks(clean_text(await extract_text(answer, self.selector, context.environment)))
        limit = self.max_length or settings.max_length
        way_back = "ask for a part with selector, or for more with maxLength"
        short = trim_output(text, OutputSettings(max_chars=limit, max_lines=len(text) + 1), way_back=way_back)
        moved = f"[redirected to {answer.url}]\n" if answer.redirected else ""
        display = f"{answer.url}: {format_count(len(text), 'character')}"
        return ToolResult(llm_content=moved + short.text, return_display=display, full_output=short.full)
