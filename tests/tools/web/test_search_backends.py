"""Where web_search looks: what each service is asked, and what its answers and failures become."""

import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import ddgs
import pytest
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

from ollm.config.settings import ToolSettings, WebSearchSettings
from ollm.tools.web_search import WebSearch, WebSearchNeeds
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Server, reply, serving

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


def stand_in(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any]) -> None:
    """The library's own interface and exceptions: `DDGS(timeout).text(query, max_results)` gives title, href, body."""

    class Engines:
        def __init__(self, timeout: int) -> None:
            self.timeout = timeout

        def text(self, query: str, max_results: int) -> Any:
            return answer()

    monkeypatch.setattr(ddgs, "DDGS", Engines)


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
        (RatelimitException("202 Ratelimit"), "NetworkError"),
        (TimeoutException("timed out"), "Timeout"),
    ],
)
async def test_ddgs_failures_are_told_apart(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: str
) -> None:
    stand_in(monkeypatch, failing(failure))

    assert error(await searcher(workspace, backend="ddgs")("web_search", query="x"))[0] == kind


@pytest.mark.parametrize("nonsense", [None, "text", {}, [None, "x", 5], [{"href": 5}, {"href": "javascript:x"}]])
async def test_nonsense_from_ddgs_is_no_result(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, nonsense: object
) -> None:
    stand_in(monkeypatch, lambda: nonsense)

    assert error(await searcher(workspace, backend="ddgs")("web_search", query="x"))[0] == "NotFound"


def test_ddgs_takes_what_it_is_given() -> None:
    """The stand-in is only worth something while the library looks like it."""
    assert "query" in inspect.signature(ddgs.DDGS(timeout=1).text).parameters


@covers("T6.6")
async def test_the_installed_library_is_the_default_backend(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, lambda: [{"title": "Found", "href": "https://example.org/", "body": "by default"}])

    assert "https://example.org/" in content(await searcher(workspace)("web_search", query="x"))


async def test_an_address_alone_means_searxng(workspace: Path) -> None:
    drive = searcher(workspace, base_url="http://127.0.0.1:1")

    kind, _ = error(await drive("web_search", query="x"))

    assert kind == "NetworkError"


async def test_without_a_backend_and_without_the_library_a_sentence_says_what_to_do(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ollm.tools.web.search_backends.find_spec", lambda name: None)

    kind, message = error(await searcher(workspace)("web_search", query="x"))

    assert kind == "NoBackend"
    assert "ollm-cli[search]" in message


async def test_a_missing_ddgs_says_how_to_install_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)

    kind, message = error(await searcher(workspace, backend="ddgs")("web_search", query="x"))

    assert kind == "NoBackend"
    assert "ollm-cli[search]" in message
