"""A real browser at a real daemon's pages. Where there is none, the tests that want one are skipped."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.daemon.running import Daemon

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 60_000  # for a machine that has much else to do

playwright_api = pytest.importorskip("playwright.async_api", reason="Playwright is not installed")


def find_browser() -> str:
    """The system's browser, or a skip that says what is missing."""
    found = os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or set CHROMIUM)")
    return found


class Visitor:
    """One browser profile with one page, and everything that went wrong in it."""

    def __init__(self, context: Any, page: Any, daemon: Daemon) -> None:
        self.context, self.page, self.daemon = context, page, daemon
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", self._note_message)
        page.on("request", self._note_request)

    def _note_message(self, message: Any) -> None:
        """Note errors and refusals of our policy; failed requests are the test's own business."""
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(f"{message.type}: {message.text}")

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.faults.append(f"asked elsewhere: {request.url}")

    async def log_in(self) -> None:
        await self.page.goto(await make_link(self.daemon))
        try:
            await self.page.wait_for_selector("ollm-session-list")
        except playwright_api.TimeoutError as error:
            raise AssertionError(f"not logged in: {self.faults}") from error

    async def open_session(self, session: str) -> None:
        await self.page.evaluate("address => { location.hash = address; }", f"#/session/{session}")
        await self.page.wait_for_selector("ollm-session ollm-messages")

    async def say(self, text: str) -> None:
        await self.page.fill("ollm-composer textarea", text)
        await self.page.press("ollm-composer textarea", "Enter")


async def make_link(found: Daemon) -> str:
    """Return the link that `ollm web --print` prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ollm", "web", "--print"), env=found.environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().strip()


def get_port(found: Daemon) -> int:
    return int(json.loads((found.home / "run" / "daemon.pid").read_text())["port"])


@asynccontextmanager
async def chromium() -> AsyncIterator[Any]:
    async with playwright_api.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            with contextlib.suppress(Exception):
                await browser.close()


@asynccontextmanager
async def visit(browser: Any, found: Daemon, **more: Any) -> AsyncIterator[Visitor]:
    """A profile of its own, logged in."""
    context = await browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **more})
    context.set_default_timeout(PATIENCE_MS)
    visitor = Visitor(context, await context.new_page(), found)
    try:
        await visitor.log_in()
        yield visitor
    finally:
        await context.close()
