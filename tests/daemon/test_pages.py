"""The pages in a real browser at a real daemon."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.daemon.browser import Visitor, chromium, get_port, make_link, visit
from tests.daemon.long_session import LONG, write_long_session
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer
from tests.sizes import SOAK

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the one browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with chromium() as started:
        yield started


ANSWER = "It adds **floats**.\n\n```python\nreturn sum(prices)\n```\n"

EDIT = Answer(calls=[("write_file", {"path": "new.txt", "content": "hello\n"})])

NOBODY = "11111111-2222-4333-8444-555555555555"

GROW = """async () => {
  const list = document.querySelector("ollm-messages"), tall = document.createElement("div");
  const settle = async () => {
    for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame);
    await new Promise(done => setTimeout(done));  // between frames, not in one
  };
  list.tail.append(tall);
  tall.style.height = "2000px";
  await settle();
  list.scrollTop -= 10;  // a scroll is still to be told of when a question comes
  tall.style.height = "3000px";
  await settle();
  const followed = list.atEnd;
  list.scrollTop -= 500;
  await settle();
  tall.style.height = "4000px";
  await settle();
  const stayed = !list.atEnd;
  tall.remove();
  return [followed, stayed];
}"""


async def rename_delete_and_undo(found: Daemon, visitor: Visitor, session: str) -> None:
    """A deletion that was undone stays undone."""
    page, line = visitor.page, f".sessions li[data-id='{session}']"
    await page.hover(line)
    await page.click(f"{line} button")
    await page.fill("dialog input", "A <b>new</b> title \u202eelt")
    await page.press("dialog input", "Enter")
    await page.wait_for_selector(f"{line} >> text=A <b>new</b> title")
    assert await page.locator("dialog").count() == 0, "the key that saved it presses nothing else"
    assert await page.get_attribute(f"{line} button", "title") == "Actions for A <b>new</b> title \\u202eelt"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    await page.clock.install()
    await page.hover(line)
    await page.click(f"{line} button")
    await page.click("dialog >> text=Delete")
    await page.wait_for_selector(line, state="detached")
    assert await page.evaluate("document.activeElement.type") == "search", "the last line is gone"
    await page.click(".toast >> text=Undo")
    await page.wait_for_selector(f"{line} a:focus")
    await page.clock.fast_forward(30_000)
    await page.evaluate("fetch('/web/files/icon.svg').then(() => undefined)")
    assert "DELETE" not in asked
    assert (await found.ask("GET", f"/sessions/{session}")).status == 200


async def test_one_logs_in_asks_confirms_and_sees_the_answer_rendered(tmp_path: Path, browser: Any) -> None:
    script = [Answer(text=ANSWER, thinking="Let me see."), EDIT, "Written."]
    async with daemon(tmp_path, script) as found, visit(browser, found) as visitor:
        page = visitor.page
        session = await found.open()
        await visitor.open_session(session)
        await visitor.say("Why is it wrong?")
        await page.wait_for_selector("ollm-messages .item code .nb")
        assert await page.inner_text("ollm-messages .item section.assistant strong") == "floats"
        await page.wait_for_selector(".side .sessions .title >> text=Why is it wrong?")

        await visitor.say("Write a file")
        await page.wait_for_selector("ollm-confirmation pre.diff .add")
        assert "+hello" in await page.inner_text("ollm-confirmation pre.diff")
        await page.wait_for_selector("details.call.running .outcome >> text=waiting for you")
        await page.click("ollm-confirmation .primary")
        await page.wait_for_selector("ollm-messages .item >> text=Written.")
        assert (found.workspace / "new.txt").read_text() == "hello\n"
        assert await page.locator("ollm-confirmation").count() == 0
        assert await page.locator("details.call.ok pre.diff .add").count() == 1

        assert await page.evaluate(GROW) == [True, True], "the end stays in sight, unless one scrolled away"
        assert "ticket" not in page.url
        assert await page.evaluate("document.cookie") == "", "the cookie is not for scripts"
        await page.reload()
        await page.wait_for_selector("ollm-messages .item >> text=Written.")
        for address in ("session/", "session/nonsense", f"session/{NOBODY}", "nonsense"):
            await page.evaluate("address => { location.hash = '#/' + address; }", address)
            kind = "session" if "session" in address else "page"
            await page.wait_for_selector(f"main .blank h1 >> text=No such {kind}")
            await page.wait_for_function("document.title === 'Not found · ollm'")
            await page.click("main .blank a >> text=All sessions")
            await page.wait_for_selector("main .blank h1 >> text=Pick a session")
        assert await page.locator(".toast").count() == 0
        await rename_delete_and_undo(found, visitor, session)
        assert visitor.faults == []


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_a_link_that_was_used_and_a_page_that_is_not_logged_in_say_what_to_do(
    tmp_path: Path, browser: Any
) -> None:
    async with daemon(tmp_path) as found:
        link = await make_link(found)
        for address, words in (
            (link, ""),
            (link, "This link was used or has expired."),
            (link.partition("#")[0], "not logged in"),
        ):
            page = await (await browser.new_context()).new_page()
            await page.goto(address)
            await page.wait_for_selector(f"main.gate >> text={words}" if words else "ollm-session-list")
            assert not words or "ollm web" in await page.inner_text("main.gate")


async def serve_another_version(route: Any) -> None:
    """As a page has it that was loaded before an update."""
    text = (await (await route.fetch()).body()).decode()
    await route.fulfill(
        content_type="text/javascript", body=text.replace("import.meta.url", '"/web/files/before/x.js"')
    )


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_a_killed_daemon_is_found_again_and_the_page_goes_on(tmp_path: Path, browser: Any) -> None:
    script = ["There.", "First answer.", Answer(text="never to be finished " * 50, pace=0.2), "Second answer."]
    async with daemon(tmp_path, script) as found, visit(browser, found) as visitor:
        page = visitor.page
        other = await found.open()
        await found.say(other, "Said elsewhere.")
        session = await found.open()
        await visitor.open_session(session)
        await visitor.say("One")
        await page.wait_for_selector(".item >> text=First answer.")
        await visitor.say("Two")
        await page.wait_for_selector("ollm-live-turn >> text=never to be")
        port = get_port(found)
        await found.end(signal.SIGKILL)
        await page.wait_for_selector(".banner:visible")
        await visitor.open_session(other)
        await page.wait_for_selector(".toast >> text=The daemon does not answer.")
        await page.click("nav.pages a[data-page=settings]")
        await page.wait_for_selector("ollm-settings h1")
        await page.go_back()
        await found.start("--tcp")
        assert get_port(found) == port
        await page.wait_for_selector(".banner", state="hidden")
        await page.wait_for_selector(".item >> text=Said elsewhere.")
        await visitor.open_session(session)
        await page.wait_for_selector("ollm-live-turn section", state="hidden")
        await visitor.say("Three")
        await page.wait_for_selector(".item >> text=Second answer.")
        assert await page.locator(".banner.updated").count() == 0
        await page.route("**/api.js", serve_another_version)
        await page.reload()
        await page.wait_for_selector(".banner.updated button >> text=Reload")
        faults = [fault for fault in visitor.faults if "ERR_" not in fault]
        assert faults == []


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_two_browsers_see_the_same_and_one_answer_counts(tmp_path: Path, browser: Any) -> None:
    async with daemon(tmp_path, [EDIT, "Done together."]) as found:
        async with visit(browser, found) as first, visit(browser, found) as second:
            session = await found.open()
            await asyncio.gather(first.open_session(session), second.open_session(session))
            await first.say("Write it")
            await asyncio.gather(*(one.page.wait_for_selector("ollm-confirmation") for one in (first, second)))
            await second.page.click("ollm-confirmation .primary")
            for one in (first, second):
                await one.page.wait_for_selector(".item >> text=Done together.")
                await one.page.wait_for_selector("ollm-confirmation", state="detached")  # events may follow the answer
                assert one.faults == []


HOSTILE = """<img src=x onerror="alert(1)"><script>alert(1)</script> [a](javascript:alert(1))

<svg onload=alert(1)> ![p](http://evil.example/p.png)"""


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_hostile_words_stay_words_and_messages_queue(tmp_path: Path, browser: Any) -> None:
    script = [Answer(text=HOSTILE, thinking=HOSTILE), Answer(text="slow words " * 9, pace=0.15), "After the queue."]
    async with daemon(tmp_path, script) as found, visit(browser, found) as visitor:
        page = visitor.page
        session = await found.open()
        await visitor.open_session(session)
        await visitor.say(HOSTILE)
        await page.wait_for_selector(".item section.assistant > .text >> text=onerror")
        assert await page.locator(":is(img[src='x'], svg[onload], a[href^='javascript'], .item script)").count() == 0
        await visitor.say("slowly")
        await page.wait_for_selector("ollm-live-turn >> text=slow words")
        await visitor.say("the next one")
        await page.wait_for_selector(".waiting li")
        await page.wait_for_selector(".item >> text=After the queue.")
        assert await page.locator(".waiting li").count() == 0

        assert visitor.faults == []


PAINT = """async id => {
  const started = performance.now();
  location.hash = "#/session/" + id;
  while (!document.querySelector("ollm-messages .item section")) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""

FIRST_PAINT = """new Promise(done => {
  const look = () => requestAnimationFrame(document.querySelector("ollm-messages .item section") ? finish : look);
  const finish = () => setTimeout(() => done(performance.now()));
  look();
})"""


async def open_anew(found: Daemon, browser: Any, state: Any) -> tuple[float, list[str]]:
    """A daemon that just started and a profile that has the login alone: milliseconds to the first paint by address,
    and what was asked for until then."""
    await found.end(signal.SIGKILL)
    await found.start("--tcp")
    context = await browser.new_context(storage_state=state)
    page = await context.new_page()
    await asyncio.sleep(2)  # a new profile loads pages of the browser's own first
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("//")[2].partition("/")[2]))
    await page.goto(f"http://127.0.0.1:{get_port(found)}/#/session/{LONG}", wait_until="commit")
    took = float(await page.evaluate(FIRST_PAINT))
    found_early = list(asked)
    await page.wait_for_selector(".sessions li a")
    await context.close()
    return took, found_early


@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_ten_thousand_messages_are_painted_at_once_and_any_of_them_is_found(tmp_path: Path, browser: Any) -> None:
    (tmp_path / "project").mkdir()
    write_long_session(tmp_path / ".ollm", tmp_path / "project", 10_000)
    async with daemon(tmp_path) as found, visit(browser, found) as visitor:
        page = visitor.page
        await page.wait_for_selector(".sessions li a")
        times = []
        for _ in range(5):
            times.append(await page.evaluate(PAINT, LONG))
            await page.evaluate("location.hash = '#/'")
            await page.wait_for_selector("ollm-session", state="detached")
        await visitor.open_session(LONG)
        await page.wait_for_selector(".item >> text=Message 10000.")
        for _ in range(50):
            await page.mouse.move(700, 400)
            await page.mouse.wheel(0, -900)
        assert await page.locator("ollm-messages .item").count() <= 200
        for number in (5000, 1, 9999, 250):
            await page.fill(".jump", str(number))
            await page.press(".jump", "Enter")
            await page.wait_for_selector(f".pointed[data-number='{number}']")
        assert await page.locator("ollm-messages .item").count() <= 200
        assert visitor.faults == []
        state = await visitor.context.storage_state()
        cold = [await open_anew(found, browser, state) for _ in range(4)]
    slow = max(1.0, os.getloadavg()[0] / 2)
    assert min(times) < 300 * slow, times
    assert min(took for took, _ in cold) < 300 * slow, cold
    for _, asked in cold:
        first = [one for one in asked if not one.startswith("web/files/")][1]
        assert first == f"sessions/{LONG}/transcript?limit=16", "nothing else comes before the messages"


BOX = "ollm-composer textarea"

SLOW = Answer(text="slow words " * 60, pace=0.2)

PHONE = {"width": 390, "height": 844}


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
    await page.click("ollm-confirmation .primary")
    await page.wait_for_selector(".attached li >> text=$ touch made.txt")
    assert (found.workspace / "made.txt").exists()
    await visitor.say("!sleep 60")
    await page.wait_for_selector(".working >> text=sleep 60")
    await page.keyboard.press("Escape")
    await page.wait_for_selector(".reply.bad >> text=The command was stopped.")
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
    await page.reload()
    await page.wait_for_selector("ollm-composer textarea")
    assert await page.input_value(BOX) == "and then"
    assert len(found.server.chats) == asked


async def take_notes_and_show_help(found: Daemon, visitor: Visitor) -> None:
    """`#` keeps a note, `?` shows the keys; the help lists what the page has. The model gets none of it."""
    page, asked = visitor.page, len(found.server.chats)
    await page.fill(BOX, "")
    await visitor.say("# use tabs")
    await page.wait_for_selector(".reply >> text=# use tabs")
    await visitor.say("/memory")
    await page.wait_for_selector(".reply:has(code:text-is('/memory')) >> text=use tabs")
    await visitor.say("?")
    await page.wait_for_selector(".reply:has(code:text-is('?')) >> text=show these keys")
    assert "/approval" not in await page.inner_text(".reply:has(code:text-is('?')) >> nth=0")
    await visitor.say("/help")
    await page.wait_for_selector(".reply >> text=/approval")
    shown = await page.inner_text(".reply >> nth=-1")
    assert [name for name in ("Ctrl-Z", "/config", "/doctor") if name in shown] == []
    assert len(found.server.chats) == asked


async def test_a_question_of_a_shell_command_stays_until_it_is_answered(tmp_path: Path, browser: Any) -> None:
    """It is there after a reload, in another browser, and for who comes back from another page; so is the output, until a message takes it."""
    async with daemon(tmp_path, ["Read."]) as found, visit(browser, found) as visitor, visit(browser, found) as other:
        session = await found.open()
        await visitor.open_session(session)
        await visitor.say("!touch made.txt; expr 41 + 1")
        for _ in range(2):
            await visitor.page.wait_for_selector("ollm-confirmation >> text=touch made.txt")
            await visitor.page.reload()
        await visitor.page.evaluate("location.hash = '#/policy'")
        await visitor.open_session(session)
        await other.open_session(session)
        for page in (visitor.page, other.page):
            await page.wait_for_selector("ollm-confirmation >> text=touch made.txt")
            await page.wait_for_selector(".stop", state="visible")
        await other.page.click("ollm-confirmation .primary")
        for page in (visitor.page, other.page):
            await page.wait_for_selector("ollm-confirmation", state="detached")
            await page.wait_for_selector(".stop", state="hidden")
            await page.wait_for_selector(".reply >> text=42")
        await visitor.page.reload()
        await visitor.page.wait_for_selector(".attached >> text=expr 41 + 1")
        await visitor.say("What is it?")
        await visitor.page.wait_for_selector(".item >> text=Read.")
        await visitor.page.reload()
        await visitor.page.wait_for_selector(".item >> text=Read.")
        assert await visitor.page.locator(".reply, .attached li").count() == 0
        assert "42" in str(found.server.chats[-1]["messages"][-1])
        assert (found.workspace / "made.txt").exists()
        assert visitor.faults + other.faults == []


async def test_the_box_completes_runs_commands_and_gets_queued_words_back(tmp_path: Path, browser: Any) -> None:
    script = ["I read it.", "A file.", SLOW]
    async with daemon(tmp_path, script) as found, visit(browser, found) as visitor:
        (found.workspace / "src").mkdir()
        (found.workspace / "src" / "calc.py").write_text("def add(a, b): ...\n")
        await visitor.open_session(await found.open())
        await complete_words(found, visitor)
        await run_shell_commands(found, visitor)
        await stop_with_a_queue(found, visitor)
        await take_notes_and_show_help(found, visitor)
        assert visitor.faults == []


async def answer_with_a_rule(found: Daemon, visitor: Visitor) -> None:
    """Three answers are in sight; "Always …" shows the others with the rule they add. One that is kept can be revoked."""
    page = visitor.page
    await visitor.say("Run it")
    await page.wait_for_selector("ollm-confirmation")
    seen = "all => all.filter((one) => one.checkVisibility()).map((one) => one.textContent)"
    parts = "ollm-confirmation button, ollm-confirmation summary"
    assert await page.eval_on_selector_all(parts, seen) == ["Yes", "Always …", "No"]
    assert "risk" not in await page.inner_text("ollm-confirmation")
    await page.click("ollm-confirmation summary")
    shown = await page.inner_text("ollm-confirmation")
    assert "Always in every folder" in shown
    names = await page.eval_on_selector_all(
        "ollm-confirmation button", "all => all.map((one) => one.ariaLabel ?? one.textContent)"
    )
    assert len(set(names)) == len(names)
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
    await visitor.say("/rewind")
    await page.wait_for_selector("ollm-snapshot-panel:focus")
    await page.keyboard.press("Escape")
    await page.click("[data-number='1'] .rewind-here")
    await page.click(".preview >> text=Rewind to before message 1")
    await page.wait_for_selector(".preview button", state="detached")
    assert await page.input_value(BOX) == "Run it"


async def test_answers_show_their_rules_errors_stay_and_a_click_rewinds(tmp_path: Path, browser: Any) -> None:
    script = [Answer(calls=[("shell", {"command": "touch made.txt"})]), "It ran.", Answer(status=500)]
    async with daemon(tmp_path, script) as found:
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
