"""T6.6, T6.7: web_search against stand-ins that answer as the services document it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import ddgs
import pytest

from ollm.config.settings import ToolSettings, WebSearchSettings
from ollm.tools.web.search_backends import SearchHit
from ollm.tools.web_search import WebSearchNeeds
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Request, Server, Writer, serving


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


async def test_a_slow_service_times_out(workspace: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from ollm.tools.web.search_backends import Searxng

    async def silent(request: Request, writer: Writer) -> None:
        await asyncio.sleep(30)

    server.routes["/search"] = silent
    slow = WebSearchNeeds(others={"slow": Searxng(name="searxng", base_url=server.url(""), timeout=0.2)})

    assert error(await searcher(workspace, slow, backend="slow")("web_search", query="x"))[0] == "Timeout"
