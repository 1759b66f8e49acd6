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
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

from ollm.config.settings import ToolSettings, WebSearchSettings
from ollm.tools.web_search import (
    SearchHit,
    WebSearchNeeds,
)
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Server, reply, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


def searcher(workspace: Path, search: WebSearchNeeds | None = None, **settings: Any) -> Driver:
    driver = Driver(workspace, settings=ToolSettings(web_search=WebSearchSettings(**settings)))
    driver.services.search = search or driver.services.search
    return driver


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


TAVILY = {
    "query": "python",
    "answer": None,
    "results": [{"title": "Python", "url": "https://python.org", "content": "A language.", "score": 0.9}],
    "response_time": 1.2,
}

PATHS = {"searxng": "/search", "brave": "/res/v1/web/search", "tavily": "/search"}


def answering(document: Any, **headers: str):
    return reply(json.dumps(document), content_type="application/json", **headers)


@covers("T6.8")
@pytest.mark.parametrize("backend", ["searxng", "brave", "tavily"])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("429 Too Many Requests", "rate limiting"),
        ("500 Oops", "500"),
        ("404 Not Found", "404"),
        ("401 Unauthorized", "401"),
    ],
)
async def test_errors_of_a_service_are_said_in_words(
    workspace: Path, server: Server, backend: str, status: str, said: str
) -> None:
    server.routes[PATHS[backend]] = reply('{"detail": "no"}', status=status, retry_after="7")

    kind, message = error(await searcher(workspace, backend=backend, base_url=server.url(""))("web_search", query="x"))

    assert kind == "HttpError"
    assert said in message
    assert "key-1" not in message
    if "429" in status:
        assert "in 7 seconds" in message


async def test_searxng_without_json_says_what_to_set(workspace: Path, server: Server) -> None:
    server.routes["/search"] = reply("Forbidden", status="403 Forbidden")

    _, message = error(await searcher(workspace, backend="searxng", base_url=server.url(""))("web_search", query="x"))

    assert "search.formats" in message


@pytest.mark.parametrize("backend", ["searxng", "brave", "tavily"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html>blocked</html>", "HttpError"),
        ("", "HttpError"),
        ("[" * 100_000, "HttpError"),
        ("[]", "NotFound"),
        ("null", "NotFound"),
        ('{"results": "none", "web": 5}', "NotFound"),
        ('{"results": [1, null, {"url": 5}], "web": {"results": {}}}', "NotFound"),
        ('{"results": [], "web": {"results": []}}', "NotFound"),
    ],
)
async def test_nonsense_from_a_service_is_told_apart_from_no_result(
    workspace: Path, server: Server, backend: str, body: str, kind: str
) -> None:
    server.routes[PATHS[backend]] = reply(body, content_type="application/json")

    assert (
        error(await searcher(workspace, backend=backend, base_url=server.url(""))("web_search", query="x"))[0] == kind
    )


async def test_a_redirect_elsewhere_does_not_take_the_key_along(workspace: Path, server: Server) -> None:
    async with serving() as other:
        other.routes["/x"] = answering(TAVILY)
        server.routes["/search"] = reply("", status="307 Temporary", location=other.url("/x"))

        kind, _ = error(await searcher(workspace, backend="tavily", base_url=server.url(""))("web_search", query="x"))

        assert kind == "AddressRefused"
        assert other.requests == []


def failing(failure: Exception) -> Callable[[], Any]:
    def fail() -> None:
        raise failure

    return fail


@covers("T6.6")
async def test_ddgs_results_are_shown(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, lambda: [{"title": "T", "href": "https://t.example", "body": "b"}, {"title": "no link"}])

    assert (
        content(await searcher(workspace, backend="ddgs")("web_search", query="x"))
        == "1. T\n   https://t.example\n   b"
    )


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (DDGSException("No results found."), "NotFound"),
        (DDGSException(OSError("No route to host")), "NetworkError"),
        (RatelimitException("202 Ratelimit"), "NetworkError"),
        (TimeoutException("timed out"), "Timeout"),
    ],
)
async def test_ddgs_failures_are_told_apart(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: str
) -> None:
    stand_in(monkeypatch, failing(failure))

    assert error(await searcher(workspace, backend="ddgs")("web_search", query="x"))[0] == kind


@covers("T6.6")
async def test_the_installed_library_is_the_default_backend(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, lambda: [{"title": "Found", "href": "https://example.org/", "body": "by default"}])

    assert "https://example.org/" in content(await searcher(workspace)("web_search", query="x"))


async def test_without_a_backend_and_without_the_library_a_sentence_says_what_to_do(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ollm.tools.web_search.find_spec", lambda name: None)

    kind, message = error(await searcher(workspace)("web_search", query="x"))

    assert kind == "NoBackend"
    assert "[search]" in message


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
