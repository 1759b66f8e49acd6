"""The page like the terminal: completion, shell commands, stopping, answers with their rules, errors, rewinding."""

from pathlib import Path
from typing import Any

from tests.daemon.browser import Visitor, chromium, visit
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer

BOX = "ollm-composer textarea"
SLOW = Answer(text="slow words " * 60, pace=0.2)
PHONE = {"width": 390, "height": 844}
ANSWERS = "[...document.querySelectorAll('ollm-confirmation .buttons button')].map(one => one.innerText)"


async def complete_words(found: Daemon, visitor: Visitor) -> None:
    """`/` lists commands and `@` files; Tab takes one, and the file goes with the message."""
    page = visitor.page
    await page.type(BOX, "/appr")
    await page.wait_for_selector(".completion >> text=/approval")
    await page.press(BOX, "Tab")
    assert await page.input_value(BOX) == "/approval "
    await page.fill(BOX, "")
    await page.type(BOX, "Read @calc")
    await page.wait_for_selector(".completion >> text=@src/calc.py")
    await page.press(BOX, "ArrowDown")
    await page.press(BOX, "Enter")
    assert await page.input_value(BOX) == "Read @src/calc.py "
    await page.press(BOX, "Enter")
    await page.wait_for_selector(".item >> text=I read it.")
    assert "def add" in str(found.server.chats[-1])


async def run_shell_commands(found: Daemon, visitor: Visitor) -> None:
    """What only reads runs at once; what writes asks. The output goes with the next message."""
    page = visitor.page
    await visitor.say("!ls src")
    await page.wait_for_selector(".reply pre.output >> text=calc.py")
    await page.wait_for_selector(".attached li >> text=$ ls src")
    await page.wait_for_selector(".stop", state="hidden")
    await visitor.say("!touch made.txt")
    await page.wait_for_selector("ollm-confirmation")
    assert not (found.workspace / "made.txt").exists()
    await page.click("ollm-confirmation >> text=Yes, once")
    await page.wait_for_selector(".attached li >> text=$ touch made.txt")
    assert (found.workspace / "made.txt").exists()
    await visitor.say("!sleep 60")
    await page.wait_for_selector(".working >> text=sleep 60")
    await page.keyboard.press("Escape")
    await page.wait_for_selector(".toast >> text=The command was stopped.")
    await page.fill(BOX, "")
    await visitor.say("What is there?")
    await page.wait_for_selector(".item >> text=A file.")
    assert "[$ ls src]" in str(found.server.chats[-1])


async def stop_with_a_queue(found: Daemon, visitor: Visitor) -> None:
    """The half answer stays, the queued words come back to the box, and nothing is sent."""
    page = visitor.page
    await visitor.say("slowly")
    await page.wait_for_selector("ollm-live-turn >> text=slow words")
    await visitor.say("and then")
    await page.wait_for_selector(".waiting li")
    asked = len(found.server.chats)
    await page.keyboard.press("Escape")
    await page.wait_for_selector(".stop", state="hidden")
    await page.wait_for_selector(".item:last-child section.assistant >> text=slow words")
    await page.wait_for_selector(".item:last-child .notice >> text=Stopped.")
    assert await page.input_value(BOX) == "and then"
    assert await page.locator(".waiting li").count() == 0
    assert len(found.server.chats) == asked


async def test_the_box_completes_runs_commands_and_gets_queued_words_back(tmp_path: Path) -> None:
    script = ["I read it.", "A file.", SLOW]
    async with daemon(tmp_path, script) as found, chromium() as browser, visit(browser, found) as visitor:
        (found.workspace / "src").mkdir()
        (found.workspace / "src" / "calc.py").write_text("def add(a, b): ...\n")
        await visitor.open_session(await found.open())
        await complete_words(found, visitor)
        await run_shell_commands(found, visitor)
        await stop_with_a_queue(found, visitor)
        await visitor.say("/help")
        await visitor.page.wait_for_selector(".reply >> text=/approval")
        assert "Ctrl-Z" not in await visitor.page.inner_text(".reply >> nth=-1")
        assert visitor.faults == []


async def answer_with_a_rule(found: Daemon, visitor: Visitor) -> None:
    """Every answer is in sight with the rule it adds; one that is kept can be revoked."""
    page = visitor.page
    await visitor.say("Run it")
    await page.wait_for_selector("ollm-confirmation")
    answers = await page.evaluate(ANSWERS)
    assert answers[:3] == ["This session", "Always in this folder", "Always in every folder"]
    assert answers[-1] == "Yes, once"
    assert "shell:=touch made.txt" in await page.locator("ollm-confirmation .rule code").all_inner_texts()
    for button in await page.locator("ollm-confirmation button").all():
        assert await button.is_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    await page.click("ollm-confirmation >> text=Always in this folder >> nth=0")
    await page.wait_for_selector(".item >> text=It ran.")
    await page.evaluate("location.hash = '#/policy'")
    await page.click(".grants li >> text=Revoke")
    await page.wait_for_selector("text=No grants.")
    assert "touch" not in (found.home / "grants.yaml").read_text()
    await page.go_back()


async def rewind_by_a_click(found: Daemon, visitor: Visitor) -> None:
    """The clock beside a message previews going back to it, does so, and gives the words back."""
    page: Any = visitor.page
    await page.click("[data-number='1'] .rewind-here")
    await page.click(".preview >> text=Rewind to before message 1")
    await page.wait_for_selector(".preview button", state="detached")
    assert await page.input_value(BOX) == "Run it"


async def test_answers_show_their_rules_errors_stay_and_a_click_rewinds(tmp_path: Path) -> None:
    script = [Answer(calls=[("shell", {"command": "touch made.txt"})]), "It ran.", Answer(status=500)]
    async with daemon(tmp_path, script) as found, chromium() as browser:
        async with visit(browser, found, viewport=PHONE) as visitor:
            page = visitor.page
            await visitor.open_session(await found.open())
            await answer_with_a_rule(found, visitor)
            await visitor.say("Again")
            await page.wait_for_selector(".item .notice.error")
            said = await page.inner_text(".item .notice.error")
            await page.reload()
            await page.wait_for_selector(".item .notice.error")
            assert await page.inner_text(".item .notice.error") == said
            await rewind_by_a_click(found, visitor)
            assert visitor.faults == []
