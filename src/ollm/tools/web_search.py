"""Search the web (T6.6, T6.7) with SearXNG, Brave, Tavily, or the ddgs library. An extension may add more backends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Protocol
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from ollm.config.settings import WebFetchSettings, WebSearchSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.text import format_count, shorten_line
from ollm.domain.tools import FileChange, Risk, ToolResult
from ollm.providers.base import as_entries, as_mapping, as_text
from ollm.system.install_command import describe_extra_install
from ollm.system.threads import run_in_thread
from ollm.tools.framework.base import SmallForm, Tool, ToolContext
from ollm.tools.framework.output import clean_text, disarm_template_marks
from ollm.tools.web.address import parse_url

MAX_SNIPPET_CHARS = 300
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
SERVICE_URLS = {"searxng": "", "brave": "https://api.search.brave.com", "tavily": "https://api.tavily.com"}
SNIPPET_KEYS = ("content", "description", "body")  # SearXNG and Tavily use the first, Brave the second, ddgs the third.
MAX_RESULTS = 20
KEY_REFUSED_STATUSES = (401, 403)
RATE_LIMITED_STATUSES = (429, 432, 433)  # Tavily answers 432 and 433 when a plan is used up.


class SearchHit(Data, frozen=True):
    """One result, as returned by the backend."""

    title: str
    url: str
    snippet: str = ""


class SearchBackend(Protocol):
    """A search backend. Raises ToolFailure: HttpError, NetworkError, Timeout, NoBackend."""

    async def search(self, query: str, count: int) -> list[SearchHit]: ...


def build_request(service: str, key: str, query: str, count: int) -> tuple[str, dict[str, str], bytes | None]:
    """Build the path, the headers and the body of a request to a service."""
    most = min(count, MAX_RESULTS)
    match service:
        case "brave":
            asked = urlencode({"q": query, "count": most, "text_decorations": "false"})
            return f"/res/v1/web/search?{asked}", {"X-Subscription-Token": key}, None
        case "tavily":
            body = msgspec.json.encode({"query": query, "max_results": most})
            return "/search", {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}, body
    return "/search?" + urlencode({"q": query, "format": "json"}), {}, None


class SearchService(Data, frozen=True):
    """A search service on the web: its name, address and key."""

    name: str
    base_url: str
    key: str = ""
    timeout: float = 30

    async def search(self, query: str, count: int) -> list[SearchHit]:
        """Search the service. The configured address may be private, but not the target of a redirect."""
        from ollm.tools.web.client import fetch_url  # Searches by another backend do not need it.

        path, headers, content = build_request(self.name, self.key, query, count)
        url = f"{self.base_url.rstrip('/')}{path}"
        limits = WebFetchSettings(timeout=self.timeout, allow_private=(parse_url(url).host_and_port,))
        headers |= {"Accept": "application/json"}
        answer = await fetch_url(url, limits, headers=headers, content=content)
        if answer.status != 200:
            raise self._make_failure(answer.status, answer.reason, answer.headers.get("retry-after", ""))
        try:
            document = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ToolFailure("HttpError", f"{self.name} answered with something that is not JSON.") from error
        found = as_mapping(document)
        return parse_hits(as_mapping(found.get("web", found)).get("results"))[:count]

    def _make_failure(self, status: int, reason: str, retry: str) -> ToolFailure:
        why = f"answered {reason}"
        if status in RATE_LIMITED_STATUSES:
            why = f"is rate limiting ({reason}). Try again {f'in {retry} seconds' if retry.isdecimal() else 'later'}"
        elif status in KEY_REFUSED_STATUSES:
            cure = "add json to search.formats in its settings.yml" if self.name == "searxng" else ""
            why = f"refused ({reason}): {cure or 'see its API key, tools.webSearch.apiKeyEnv'}"
        return ToolFailure("HttpError", f"{self.name} {why}.")


class Ddgs(Data, frozen=True):
    """The ddgs library, which queries public search engines itself."""

    timeout: float = 10

    async def search(self, query: str, count: int) -> list[SearchHit]:
        try:
            from ddgs import DDGS
            from ddgs.exceptions import DDGSException, TimeoutException
        except ImportError as error:
            raise ToolFailure("NoBackend", f"ddgs is not installed: {describe_extra_install('search')}.") from error
        try:
            found = await run_in_thread(lambda: DDGS(timeout=int(self.timeout)).text(query, max_results=count))
        except TimeoutException as error:
            raise ToolFailure("Timeout", f"ddgs: no engine answered in {self.timeout:g} seconds.") from error
        except DDGSException as error:
            if type(error) is DDGSException and not isinstance(error.args[0], Exception):  # No search engine failed.
                return []
            raise ToolFailure("NetworkError", f"ddgs found no engine that answered: {error}.") from error
        return parse_hits(found)[:count]


def parse_hits(items: Any) -> list[SearchHit]:
    """Parse the results in an answer, skipping malformed ones."""
    hits = []
    for item in as_entries(items):
        url = item.get("url") or item.get("href")
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            snippet = next((text for key in SNIPPET_KEYS if (text := as_text(item.get(key)))), "")
            hits.append(SearchHit(title=as_text(item.get("title")) or url, url=url, snippet=snippet))
    return hits


class WebSearchNeeds(Data, frozen=True):
    """Dependencies of a search: the key of the configured service, and backends from extensions."""

    key: str | None = None
    others: Mapping[str, SearchBackend] = {}

    def select_backend(self, settings: WebSearchSettings) -> SearchBackend:
        """Select the configured backend, else SearXNG if an address is set, else the library if it is installed. Raises
        ToolFailure("NoBackend") with what to set."""
        default = "searxng" if settings.base_url else "ddgs" if find_spec("ddgs") else ""
        name = (settings.backend or default).lower()
        if name in self.others:
            return self.others[name]
        if name == "ddgs":
            return Ddgs()
        if name in SERVICE_URLS:
            url = settings.base_url or SERVICE_URLS[name]
            if not url:
                raise ToolFailure("NoBackend", "SearXNG needs tools.webSearch.baseUrl, such as http://localhost:8888.")
            if not self.key and SERVICE_URLS[name]:
                raise ToolFailure("NoBackend", f"{name} needs a key: name its variable in tools.webSearch.apiKeyEnv.")
            return SearchService(name=name, base_url=url, key=self.key or "")
        known = ", ".join([*SERVICE_URLS, "ddgs", *sorted(self.others)])
        unknown = (
            f"There is no search backend named {settings.backend}"
            if name
            else f"No web search is configured, and ddgs is not installed ({describe_extra_install('search')})"
        )
        raise ToolFailure("NoBackend", f"{unknown}; the user can set tools.webSearch.backend to one of {known}.")


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
        needs.select_backend(context.settings.web_search)
        return ()

    async def run(self, context: ToolContext, needs: WebSearchNeeds) -> ToolResult:
        if not self.query.strip():
            raise ToolFailure("ValidationError", "query: expected what to look for.")
        settings = context.settings.web_search
        hits = await needs.select_backend(settings).search(self.query, self.num_results or settings.num_results)
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
