"""T6.6, T6.7: web_search against stand-ins that answer as the services document it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import ddgs
import pytest

from ollm.config.settings import ToolSettings, WebSearchSettings
from ollm.tools.web.search_backends import SearchHit
from ollm.tools.web_search import WebSearch, WebSearchNeeds
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Request, Server, Writer, reply, serving

SEARXNG = {
    "query": "python",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://www.python.org/",
            "title": "Welcome to Python.org",
            "content": "The official <b>home</b>",
            "engine": "bing",
        },
        {"url": "https://docs.python.org/", "title": "Python &amp; docs", "content": "x" * 1000, "engine": "ddg"},
        {"url": "javascript:alert(1)", "title": "bad", "content": ""},
        {"url": "https://third.example/", "title": "Third", "content": None},
    ],
    "unresponsive_engines": [["google", "timeout"]],
}
BRAVE = {
    "type": "search",
    "query": {"original": "python"},
    "web": {"type": "search", "results": [
        {"title": "Python", "url": "https://python.org", "description": "A <strong>language</strong>.\x1b[31m"},
        {"title": "Two", "url": "https://two.example", "description": "second"},
    ]},
}  # fmt: skip
TAVILY = {
    "query": "python",
    "answer": None,
    "results": [{"title": "Python", "url": "https://python.org", "content": "A language.", "score": 0.9}],
    "response_time": 1.2,
}
PATHS = {"searxng": "/search", "brave": "/res/v1/web/search", "tavily": "/search"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


def searcher(workspace: Path, search: WebSearchNeeds | None = None, **settings: Any) -> Driver:
    driver = Driver(workspace, settings=ToolSettings(web_search=WebSearchSettings(**settings)))
    driver.registry.register(WebSearch, search or WebSearchNeeds(key="key-1"))
    return driver


def answering(document: Any, **headers: str):
    return reply(json.dumps(document), content_type="application/json", **headers)


@covers("T6.6", "T6.7")
async def test_searxng_is_asked_for_json_and_its_results_are_numbered(workspace: Path, server: Server) -> None:
    server.routes["/search"] = answering(SEARXNG)

    drive = searcher(workspace, backend="searxng", base_url=server.url("/"))
    text = content(await drive("web_search", query="python docs", numResults=2))

    assert parse_qs(urlsplit(server.requests[0].path).query) == {"q": ["python docs"], "format": ["json"]}
    assert text.startswith(
        "1. Welcome to Python.org\n   https://www.python.org/\n   The official home\n\n2. Python & docs"
    )
    assert "3." not in text
    assert len(text) < 600


@covers("T6.6")
async def test_brave_gets_the_key_in_its_header_and_tags_are_taken_out(workspace: Path, server: Server) -> None:
    server.routes[PATHS["brave"]] = answering(BRAVE)

    text = content(await searcher(workspace, backend="brave", base_url=server.url(""))("web_search", query="python"))

    assert server.requests[0].headers["x-subscription-token"] == "key-1"
    assert text == "1. Python\n   https://python.org\n   A language.\n\n2. Two\n   https://two.example\n   second"


@covers("T6.6")
async def test_tavily_gets_a_document_and_a_bearer_key(workspace: Path, server: Server) -> None:
    server.routes["/search"] = answering(TAVILY)

    text = content(
        await searcher(workspace, backend="tavily", base_url=server.url(""))("web_search", query="python", numResults=3)
    )

    asked = server.requests[0]
    assert asked.method == "POST"
    assert asked.headers["authorization"] == "Bearer key-1"
    assert json.loads(asked.body) == {"query": "python", "max_results": 3}
    assert "A language." in text


@covers("T6.8")
async def test_a_service_nobody_answers_at_is_a_network_error(workspace: Path) -> None:
    drive = searcher(workspace, backend="searxng", base_url="http://127.0.0.1:9")

    assert error(await drive("web_search", query="x"))[0] == "NetworkError"


@pytest.mark.parametrize(
    ("settings", "key", "said"),
    [
        ({"backend": "altavista"}, None, "no search backend named altavista"),
        ({"backend": "searxng"}, None, "baseUrl"),
        ({"backend": "brave"}, None, "apiKeyEnv"),
        ({"backend": "tavily"}, "", "apiKeyEnv"),
    ],
)
async def test_without_a_backend_a_sentence_says_what_to_set_and_nobody_is_asked(
    workspace: Path, settings: Any, key: Any, said: str
) -> None:
    drive = searcher(workspace, WebSearchNeeds(key=key), **settings)

    kind, message = error(await drive("web_search", query="x"))

    assert kind == "NoBackend"
    assert said in message
    assert drive.person.asked == []


@covers("T6.7")
@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": " "}, {"query": "x", "numResults": 0}, {"query": "x", "numResults": -1}]
)
async def test_arguments_that_make_no_sense(workspace: Path, arguments: dict[str, Any]) -> None:
    assert (
        error(await searcher(workspace, backend="searxng", base_url="http://127.0.0.1:9")("web_search", **arguments))[0]
        == "ValidationError"
    )


async def test_an_extension_may_bring_its_own_backend(workspace: Path) -> None:
    class Mine:
        async def search(self, query: str, count: int) -> list[SearchHit]:
            return [SearchHit(title=query, url="https://mine.example", snippet=str(count))]

    drive = searcher(workspace, WebSearchNeeds(others={"mine": Mine()}), backend="mine")

    assert content(await drive("web_search", query="q")) == "1. q\n   https://mine.example\n   5"


def stand_in(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any]) -> None:
    """The library's own interface and exceptions: `DDGS(timeout).text(query, max_results)` gives title, href, body."""

    class Engines:
        def __init__(self, timeout: int) -> None:
            self.timeout = timeout

        def text(self, query: str, max_results: int) -> Any:
            return answer()

    monkeypatch.setattr(ddgs, "DDGS", Engines)


async def test_cancelling_a_search_is_quick(workspace: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, lambda: time.sleep(8) or [])
    task = asyncio.create_task(searcher(workspace, backend="ddgs")("web_search", query="x"))
    await asyncio.sleep(0.1)
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.perf_counter() - started < 5


async def test_a_slow_service_times_out(workspace: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from ollm.tools.web.search_backends import Searxng

    async def silent(request: Request, writer: Writer) -> None:
        await asyncio.sleep(30)

    server.routes["/search"] = silent
    slow = WebSearchNeeds(others={"slow": Searxng(name="searxng", base_url=server.url(""), timeout=0.2)})

    assert error(await searcher(workspace, slow, backend="slow")("web_search", query="x"))[0] == "Timeout"
