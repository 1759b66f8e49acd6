"""The page on a phone, over TLS at the public name: pairing, sending, answering, and the end by revoking."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.daemon.browser import PATIENCE_MS, chromium, visit
from tests.daemon.running import WRITE, Daemon, daemon
from tests.servers.certificates import self_signed

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "ignore_https_errors": True}
AGENT = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130 Mobile"


def configure(home: Path) -> str:
    """Serve a name of its own by TLS; returns its address."""
    certificate, _ = self_signed(home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = {"cert": str(certificate), "key": str(home / "key.pem")}
    public = f"https://box.localhost:{port}"
    (home / ".ollm").mkdir(mode=0o700)
    settings = {"daemon": {"publicUrl": public, "listen": f"127.0.0.1:{port}", "tls": tls}}
    (home / ".ollm" / "config.yaml").write_text(json.dumps(settings))
    return public


async def run_web(found: Daemon, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ollm", "web", *words), env=found.environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def tap_where_a_lasting_answer_could_come(page: Any) -> None:
    """A second tap meets what the first one met, and the wider answers take none while they are new."""
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    always, wide = page.locator("ollm-confirmation summary"), page.locator("ollm-confirmation .wider button")
    before = await always.bounding_box()
    place = before["x"] + before["width"] / 2, before["y"] + before["height"] / 2
    for _ in range(2):
        await page.touchscreen.tap(*place)
    assert await page.locator("ollm-confirmation details[open]").count() == 0
    await page.touchscreen.tap(*place)
    after = await wide.first.bounding_box()
    await page.touchscreen.tap(after["x"] + 9, after["y"] + 9)
    assert abs((await always.bounding_box())["y"] - before["y"]) < 1, "the row keeps its place"
    assert after["y"] + after["height"] < before["y"]
    await wide.first.click(trial=True)  # takes a tap by and by
    assert not [url for url in posted if "/confirmations/" in url]
    await always.click()


async def answer_while_the_daemon_is_away(page: Any) -> None:
    await page.route("**/confirmations/*", lambda route: route.fulfill(status=502))
    await page.click("ollm-confirmation button.primary")
    await page.wait_for_selector(".toast >> text=The daemon does not answer; your answer was not taken.")
    await page.unroute("**/confirmations/*")


async def read_on_another(found: Daemon, browser: Any, public: str, session: str) -> None:
    """A device that may only read is offered nothing else."""
    context = await browser.new_context(user_agent=AGENT, **PHONE)
    page = await context.new_page()
    code = (await run_web(found, "--pair", "--read-only")).splitlines()[-1]
    await page.goto(f"{public}/#pair={code}")
    await page.wait_for_selector(".sessions li")
    offers = "all => all.filter((one) => one.checkVisibility()).map((one) => one.title || one.textContent)"
    assert not {"New", "Actions for hi"} & set(await page.eval_on_selector_all(".side button", offers))
    await page.evaluate("address => { location.hash = address; }", f"#/session/{session}")
    await page.wait_for_selector("ollm-confirmation >> text=This device may only read.")
    assert await page.eval_on_selector_all("ollm-confirmation button, .rewind-here, ollm-composer *", offers) == []
    await page.click(".bar [title='Snapshots and rewind']")
    await page.wait_for_selector("ollm-snapshot-panel >> text=No snapshots yet.")
    assert await page.eval_on_selector_all("ollm-snapshot-panel button", offers) == ["Close"]
    await context.close()


async def test_a_phone_is_paired_sends_answers_and_is_revoked(tmp_path: Path) -> None:
    public = configure(tmp_path)
    async with daemon(tmp_path, ["Hello.", WRITE, "Written."]) as found, chromium() as browser:
        session = await found.open()
        context = await browser.new_context(user_agent=AGENT, **PHONE)
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(public)
        await page.fill(".gate input", "WRON-GONE")
        await page.click(".gate button")
        await page.get_by_text("wrong, was used or has expired").wait_for()
        await page.fill(".gate input", (await run_web(found, "--pair")).splitlines()[-1].lower())
        await page.click(".gate button")
        await page.wait_for_selector("ollm-session-list")
        assert (await page.evaluate("location.href")) == f"{public}/", "the code is gone from the address"

        await page.evaluate("address => { location.hash = address; }", f"#/session/{session}")
        for text, answer in (("hi", "Hello."), ("write it", "")):
            await page.fill("ollm-composer textarea", text)
            await page.click("ollm-composer .send")
            if answer:
                await page.get_by_text(answer).first.wait_for()
        yes = page.locator("ollm-confirmation button.primary")
        await yes.wait_for()
        box = await yes.bounding_box()
        assert box["height"] >= 40
        assert box["y"] > 844 / 2, "within reach of a thumb"
        await tap_where_a_lasting_answer_could_come(page)
        await answer_while_the_daemon_is_away(page)
        await read_on_another(found, browser, public, session)
        await yes.click()
        await page.get_by_text("Written.").first.wait_for()
        record = (await found.ask("GET", f"/sessions/{session}")).json
        assert record["toolCalls"][0]["result"]["questions"][0]["answer"] == "yes, answered from phone"
        assert await page.evaluate("document.documentElement.scrollWidth") == 390

        await run_web(found, "devices", "revoke", "phone")
        await page.reload()
        await page.get_by_text("This device is not paired.").wait_for()
        assert not faults


async def test_many_sessions_work_in_a_folder_if_the_settings_say_so(tmp_path: Path) -> None:
    """A new one asks nothing and stops nothing; by default it asks first."""
    async with daemon(tmp_path, [WRITE, "Written."]) as found, chromium() as browser, visit(browser, found) as visitor:
        page, first = visitor.page, await found.open()
        await visitor.open_session(first)
        await visitor.say("Write it")
        await page.wait_for_selector("ollm-confirmation")
        await page.click("text=New")
        await page.click("dialog >> text=Start")
        await page.click("dialog:has-text('Open beside?') >> text=Cancel")
        (found.home / "config.yaml").write_text("workspace:\n  sessions: many\n")
        await page.click("text=New")
        await page.click("dialog >> text=Start")
        await page.wait_for_function("first => !location.hash.endsWith(first)", arg=first)
        assert await page.locator("dialog").count() == 0
        start = "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        subprocess.run(["/bin/sh", "-c", start], cwd=found.workspace, check=True)
        await visitor.say("/worktree fix")
        await page.wait_for_selector("text=⎇ fix")
        await visitor.open_session(first)
        await page.click("ollm-confirmation .primary")
        await page.wait_for_selector(".notice >> text=Changed: new.txt")
        assert visitor.faults == []
