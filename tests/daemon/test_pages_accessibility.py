"""Every state of the pages looked through by axe-core, light and dark, wide and 360 pixels; fetched, never kept here."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.browser import Visitor, chromium, visit
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer
from tests.sizes import SOAK

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "ollm-tests"
VERSION = "4.14.0"
TEXT = "## One\n\n#### Deep\n\n`code`\n\n```python\ndef f(): ...\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> [x](https://example.org)\n"
SCRIPT = [Answer(text=TEXT, thinking="Hm"), Answer(calls=[("shell", {"command": "rm -rf build && make"})]), "ok"]
PAGES = ("tools", "policy", "models", "compare", "settings")

pytestmark = pytest.mark.skipif(not SOAK, reason="takes long: make soak")


def fetch_axe() -> str:
    """From the cache, or with npm; a skip where neither is there."""
    kept = CACHE / f"axe-{VERSION}.js"
    if not kept.exists():
        if not shutil.which("npm"):
            pytest.skip("npm is not installed, and axe-core is not in the cache")
        CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "pack", f"axe-core@{VERSION}"], cwd=CACHE, capture_output=True, check=False)
        if done.returncode:
            pytest.skip("axe-core could not be fetched")
        with tarfile.open(CACHE / f"axe-core-{VERSION}.tgz") as archive:
            found = archive.extractfile("package/axe.min.js")
            assert found is not None
            kept.write_bytes(found.read())
    return kept.read_text(encoding="utf-8")


async def look(visitor: Visitor, axe: str, state: str) -> list[str]:
    """List the violations axe finds in the page as it is now, in both colours."""
    await visitor.page.evaluate(axe)
    found: list[str] = []
    for scheme in ("light", "dark"):
        await visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        result: dict[str, Any] = await visitor.page.evaluate("axe.run(document)")
        found += [f"{state} {scheme}: {one['id']} {one['nodes'][0]['target']}" for one in result["violations"]]
    return found


async def go_through(found: Daemon, visitor: Visitor, axe: str) -> list[str]:
    page = visitor.page
    faults = await look(visitor, axe, "no session")
    session = await found.open()
    await visitor.open_session(session)
    await visitor.say("Look")
    await page.wait_for_selector(".item table")
    await page.click("details.thinking summary")
    faults += await look(visitor, axe, "session")
    await visitor.say("/help")
    await page.wait_for_selector(".reply")
    await visitor.say("Run")
    await page.wait_for_selector("ollm-confirmation")
    await visitor.say("later")
    faults += await look(visitor, axe, "question")
    await page.click("ollm-confirmation .primary")
    await page.click(".bar button[aria-label=Context].icon-button")
    await page.wait_for_selector(".plot")
    faults += await look(visitor, axe, "context")
    await page.click("button[aria-label='Snapshots and rewind']")
    await page.wait_for_selector(".snapshots li")
    faults += await look(visitor, axe, "going back")
    await page.click("text=New")
    await page.wait_for_selector("dialog[open]")
    faults += await look(visitor, axe, "dialog")
    await page.click("dialog >> text=Cancel")
    for name in PAGES:
        await page.evaluate("name => { location.hash = '#/' + name; }", name)
        await page.wait_for_selector(f"ollm-{name} .page-body :is(h2, .card)")
        faults += await look(visitor, axe, name)
    await page.fill(".side input[type=search]", "Look")
    await page.wait_for_selector(".hits li")
    faults += await look(visitor, axe, "search")
    await page.evaluate("location.hash = '#/policy'")
    await page.fill("ollm-policy textarea", "policy: [")
    await page.click("ollm-policy >> text=Test on all recorded calls")
    await page.wait_for_selector("ollm-policy .notice.warning >> text=line 1, column 10 is not YAML")
    faults += await look(visitor, axe, "rules with a mistake")
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.evaluate("location.hash = '#/session/'")
    await page.wait_for_selector("main .blank h1 >> text=No such session")
    faults += await look(visitor, axe, "no such session, narrow")
    await page.click("main .blank a")
    faults += await look(visitor, axe, "the list, narrow")
    await visitor.open_session(session)
    faults += await look(visitor, axe, "narrow")
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    return faults


async def test_axe_finds_nothing_in_any_state(tmp_path: Path) -> None:
    axe = fetch_axe()
    async with daemon(tmp_path, [*SCRIPT, *["Fine."] * 5]) as found, chromium() as browser:
        async with visit(browser, found, bypass_csp=True) as visitor:  # axe is put into the page from outside
            assert await go_through(found, visitor, axe) == []
