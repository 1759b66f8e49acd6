"""The pages beyond asking: attaching, stopping, archiving, going back, taking over."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ollm
from tests.cli.forked import ForkedProcess, find_fork_server
from tests.daemon.browser import Visitor, chromium, visit
from tests.daemon.long_session import LONG, write_long_session
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer
from tests.servers.archive_machine import ArchiveMachine
from tests.sizes import SOAK

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)
LONG_COMMAND = "printf one; " + "echo more; " * 30 + "touch made.txt"
RAW_SERVER = str(Path(__file__).parents[1] / "servers" / "raw_mcp.py")
HARM = "<img src=x onerror='window.harm = 1'><script>window.harm = 1</script>\u202eevil"
SLOW = Answer(text="slow words " * 60, pace=0.2)

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not SOAK, reason="takes long: make soak")]


async def count_seen(page: Any, selector: str) -> int:
    """Count the elements in sight."""
    script = """selector => [...document.querySelectorAll(selector)].filter(one => {
      const box = one.getBoundingClientRect();
      return box.height && box.top >= 0 && box.bottom <= innerHeight
        && one.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); }).length"""
    return int(await page.evaluate(script, selector))


async def has_text(page: Any, text: str) -> bool:
    return str(await page.input_value("ollm-composer textarea")) == text


async def wait_until(check: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(600):
        if await check():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come to that")


async def see_comparison(found: Daemon, visitor: Visitor) -> None:
    """A comparison shows who passed, names stay words, and a cell opens the session of its run."""
    page, session = visitor.page, visitor.page.url.rpartition("/")[2]
    task = {"start": "1", "request": HARM, "check": HARM}
    about = {"started": "2026-01-01T00:00:00.000Z", "hardware": HARM, "version": "1", "project": HARM}
    plan = {"tasks": {HARM: task}, "models": [HARM], "times": 1, "settings": {}, "limit": "", "network": False}
    run = {
        "model": HARM,
        "number": 1,
        "task": HARM,
        "sessionId": session,
        "passed": True,
        "reason": HARM,
        "dropped": [],
    }
    lines = (plan | {"about": about}, run | {"figures": {"seconds": 3.0}, "server": {"server": HARM}})
    (found.home / "compare").mkdir()
    (found.home / "compare/1.jsonl").write_text("\n".join(map(json.dumps, lines)))
    await page.click("a[data-page=compare]")
    await page.wait_for_selector(".compared .chart circle")
    assert HARM[:30] in await page.inner_text(".compared")
    assert await page.evaluate("window.harm === undefined")
    await page.click("text=✓ 3 s")
    await page.wait_for_selector("ollm-session ollm-messages")
    assert session in page.url


async def attach_files(found: Daemon, visitor: Visitor) -> None:
    """A picture and a text go with a message; what is neither is refused by name, and files alone are not sent."""
    page, folder = visitor.page, found.directory
    (folder / "dot.png").write_bytes(PNG)
    (folder / "notes <b>.txt").write_text("two <i>words</i>")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.4\x00\xff\xfe")
    names = ("dot.png", "notes <b>.txt", "paper.pdf")
    await page.set_input_files("ollm-composer input[type=file]", [str(folder / name) for name in names])
    await page.wait_for_selector(".toast >> text=paper.pdf is neither text nor a picture")
    assert await page.locator(".attached li").all_inner_texts() == ["dot.png", "notes <b>.txt"]
    await page.press("ollm-composer textarea", "Enter")
    await page.wait_for_selector(".toast >> text=Write what to do with the files.")
    await visitor.say("What is it?")
    await page.wait_for_selector(".item >> text=A dot.")
    assert await page.locator(".item section.user img[src^='data:image/png']").count() == 1
    assert "two <i>words</i>" in await page.inner_text(".item section.user")
    assert await page.locator(".attached li").count() == 0


async def stop_turns(visitor: Visitor) -> None:
    """Esc stops wherever the focus is; what was queued is in the box again and can be sent."""
    page = visitor.page
    for number in range(3):
        await visitor.say("slowly")
        await page.wait_for_selector("ollm-live-turn >> text=slow words")
        await visitor.say("and then")
        await page.wait_for_selector(".waiting li")
        await page.focus("ollm-messages")
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".waiting li", state="detached")
        await page.wait_for_selector(".stop", state="hidden")
        await page.press("ollm-composer textarea", "Enter")
        await page.wait_for_selector(f".item >> text=Next {number}.")
        await page.wait_for_selector(".stop", state="hidden")
        await page.wait_for_selector(".working", state="hidden")


async def answer_on_a_phone(found: Daemon, visitor: Visitor) -> None:
    """A question taller than the screen shows its buttons; the focus goes on; what the command prints stays in sight."""
    page = visitor.page
    await page.set_viewport_size({"width": 360, "height": 560})
    await visitor.say("Run it")
    await page.wait_for_selector("ollm-confirmation")
    for width in (700, 360):
        await page.set_viewport_size({"width": width, "height": 560})
        await wait_until(lambda: count_seen(page, "ollm-confirmation .buttons button.primary"))
        await page.evaluate(
            "import(document.querySelector('script').src.replace(/[^/]+$/, 'toast.js')).then(found => found.say('Something went wrong. '.repeat(4)))"
        )
        await page.wait_for_selector(".toast")
        assert await count_seen(page, "ollm-confirmation :is(.refuse input, .refuse button, .buttons button)") >= 3
        await page.evaluate("document.querySelector('.toasts').replaceChildren()")
    assert await page.locator(".pointed").count() == 0, "nothing jumped"
    await page.focus("ollm-confirmation button.primary")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".item >> text=It ran.")
    assert (found.workspace / "made.txt").exists()
    assert await page.evaluate("document.activeElement.localName") == "textarea"
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    await page.fill(".jump", "1")
    await page.press(".jump", "Enter")
    await page.wait_for_selector(".pointed[data-number='1']")


async def test_files_are_attached_turns_stopped_and_questions_answered_on_a_phone(tmp_path: Path) -> None:
    stops = [one for number in range(3) for one in (SLOW, f"Next {number}.")]
    script = ["A dot.", *stops, Answer(calls=[("shell", {"command": LONG_COMMAND})]), "It ran."]
    async with daemon(tmp_path, script) as found, chromium() as browser, visit(browser, found) as visitor:
        await visitor.open_session(await found.open())
        await see_comparison(found, visitor)
        await attach_files(found, visitor)
        await stop_turns(visitor)
        await answer_on_a_phone(found, visitor)
        assert visitor.faults == []
    assert "data:image/png" in str(found.server.chats[0])


async def go_back(found: Daemon, visitor: Visitor) -> None:
    """A rewind shows what it would change before it does; a snapshot is restored after a question."""
    page, file = visitor.page, found.workspace / "a.txt"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.click("button[aria-label='Snapshots and rewind']")
    await page.wait_for_selector("ollm-snapshot-panel:focus")
    await page.click("text=Take a snapshot now")
    await page.wait_for_selector(".snapshots .card")
    await page.click(".stretches button >> text=Before #1")
    await page.wait_for_selector(".preview .gd >> text=new")
    assert file.read_text() == "new\n"
    await page.click(".preview >> text=Rewind to before message 1")
    await page.wait_for_selector(".preview >> text=1 file restored")
    assert file.read_text() == "old\n"
    assert any(url.endswith("/checkpoints/1/restore") for url in asked)
    await page.click(".snapshots >> text=Restore >> nth=-1")
    await page.click("dialog >> text=Restore >> nth=-1")
    await page.wait_for_selector(".toast >> text=Context restored.")
    await page.focus(".panel")
    await page.keyboard.press("Escape")
    await page.wait_for_selector(".panel", state="detached")
    assert await page.evaluate("document.activeElement.ariaLabel") == "Snapshots and rewind"


async def choose_action(page: Any, session: str, action: str) -> None:
    line = f".sessions li[data-id='{session}']"
    await page.hover(line)
    await page.click(f"{line} button")
    await page.click(f"dialog button >> text='{action}'")


async def archive_and_delete(found: Daemon, visitor: Visitor, session: str) -> None:
    """An archived session is among the archived alone; one that is deleted is gone when the page is left."""
    page, line = visitor.page, f".sessions li[data-id='{session}']"
    await choose_action(page, session, "Archive")
    await page.wait_for_selector(line, state="detached")
    await page.click(".chip >> text=Archived")
    await page.wait_for_selector(line)
    await choose_action(page, session, "Unarchive")
    await page.wait_for_selector(line, state="detached")
    await page.click(".chip >> text=All")
    await page.wait_for_selector(line)
    await choose_action(page, session, "Delete")
    await page.wait_for_selector(line, state="detached")
    assert (await found.ask("GET", f"/sessions/{session}")).status == 200, "there is time to undo"
    await page.goto("about:blank")
    await wait_until(lambda: is_gone(found, session))


async def is_gone(found: Daemon, session: str) -> bool:
    return (await found.ask("GET", f"/sessions/{session}")).status == 404


async def test_one_goes_back_archives_and_deletes(tmp_path: Path) -> None:
    edit = {"path": "a.txt", "content": "new\n", "overwrite": True}
    async with daemon(tmp_path, [Answer(calls=[("write_file", edit)]), "Done."]) as found, chromium() as browser:
        (found.workspace / "a.txt").write_text("old\n")
        write_long_session(found.home, found.workspace, 500)
        async with visit(browser, found) as visitor:
            session = await found.open()
            await visitor.open_session(session)
            await visitor.say("Change it")
            await visitor.page.click("ollm-confirmation .primary")
            await visitor.page.wait_for_selector(".item >> text=Done.")
            await fork_here(visitor, session)
            await visitor.open_session(session)
            await go_back(found, visitor)
            await reload_a_long_session(visitor)
            await archive_and_delete(found, visitor, session)
            assert visitor.faults == []


async def fork_here(visitor: Visitor, session: str) -> None:
    """The page goes on in the fork, and lists it under its parent."""
    await visitor.page.wait_for_selector(f".sessions li[data-id='{session}'][data-depth='0']")
    await visitor.say("/fork 1")
    fork = await visitor.page.wait_for_selector(f"li[data-id='{session}'] + li[data-depth='1']")
    assert "fork at #1" in await fork.inner_text()


async def reload_a_long_session(visitor: Visitor) -> None:
    """The stream begins while the messages are read: they stay in their order."""
    page = visitor.page
    await visitor.open_session(LONG)
    for _ in range(4):
        await page.reload()
        await page.wait_for_selector(".item >> text=Message 500.")
        await page.wait_for_selector(".item:nth-child(41)", state="attached")
        numbers = await page.evaluate(
            "[...document.querySelectorAll('.item')].map(item => Number(item.dataset.number))"
        )
        assert numbers == sorted(numbers)
        assert numbers[-1] == 500


async def test_beside_a_session_of_another_terminal_one_opens_and_that_one_is_taken_over_after_a_question(
    tmp_path: Path,
) -> None:
    script = ["Here.", "There.", SLOW, "Beside.", "Taken."]
    async with daemon(tmp_path, script) as found, chromium() as browser, visit(browser, found) as visitor:
        page = visitor.page
        session = await found.open()
        await found.say(session, "hello")
        second = await found.open()
        await found.say(second, "hello too")
        await found.ask("DELETE", f"/sessions/{second}")
        other = start_command(found, "chat", "-r", session, "-p", "work")
        await wait_until(lambda: is_active(found, session))
        await visitor.open_session(second)
        await visitor.say("beside it")
        await page.click("dialog button >> text=Open beside")
        await page.wait_for_selector(".item >> text=Beside.")
        await visitor.open_session(session)
        await page.wait_for_selector(".notice >> text=open in another terminal")
        await visitor.say("mine now")
        shown = await page.inner_text("dialog")
        assert "in use by another ollm" in shown
        assert "--" not in shown
        await page.keyboard.press("Escape")
        await page.wait_for_selector("dialog", state="detached")
        await wait_until(lambda: has_text(page, "mine now"))
        await page.press("ollm-composer textarea", "Enter")
        await page.click("dialog button >> text=Open beside")
        await page.click("dialog button.primary >> text=Take over")
        await page.wait_for_selector(".item >> text=Taken.")
        await asyncio.wait_for(other.wait(), 120)
        assert visitor.faults == []


def start_command(found: Daemon, *line: str) -> ForkedProcess:
    server = find_fork_server(found.environment)
    assert server
    with open(os.devnull, "r+") as nothing:  # noqa: PTH123 - a descriptor is all that is wanted
        return server.fork(line, str(found.workspace), found.environment, [nothing.fileno()] * 3)


async def is_active(found: Daemon, session: str) -> bool:
    lines = (await found.ask("GET", f"/sessions?q={session}")).json
    return [line["status"] for line in lines] == ["active"]


async def read_tools(visitor: Visitor) -> None:
    """Descriptions of a server's tools are plain text without direction marks."""
    page = visitor.page
    await page.set_viewport_size({"width": 360, "height": 640})
    await page.evaluate("location.hash = '#/tools'")
    await page.click("ollm-tools summary >> text=good__harm")
    card = await page.inner_text("ollm-tools details[open]")
    assert "<script>window.harm = 1</script>\\u202e" in card
    assert "\u202e" not in card
    assert await page.locator("ollm-tools :is(img, script)").count() == 0
    assert await page.evaluate("[window.harm, document.documentElement.scrollWidth]") == [None, 360]


async def test_what_a_server_asks_for_is_answered_in_words(tmp_path: Path) -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asked = {"message": "Who <b>are</b> you?", "requestedSchema": form}
    odd = {"type": "object", "properties": {HARM: {"description": HARM}, "b": {"description": {"c": HARM}}}}
    tools = [
        {"name": "who", "inputSchema": {"type": "object"}},
        {"name": "harm", "description": HARM + "w" * 3000, "inputSchema": odd},
    ]
    setup = {"tools": tools, "asks": {"who": asked}}
    (tmp_path / "server.json").write_text(json.dumps(setup))
    servers = {"good": {"command": sys.executable, "args": [RAW_SERVER, str(tmp_path / "server.json")]}}
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text(json.dumps({"mcpServers": servers}))
    await asyncio.to_thread(ollm, "mcp", "test", home=tmp_path / ".ollm", cwd=tmp_path)
    script = [Answer(calls=[("good__who", {})]), "Thank you."]
    async with daemon(tmp_path, script) as found, chromium() as browser, visit(browser, found) as visitor:
        page = visitor.page
        await visitor.open_session(await found.open())
        await visitor.say("Ask me")
        await page.click("ollm-confirmation .primary")
        await page.wait_for_selector("ollm-confirmation >> text=Who <b>are</b> you?")
        await page.fill("ollm-confirmation input[aria-label='Your answer']", "Ada")
        await page.press("ollm-confirmation input[aria-label='Your answer']", "Enter")
        await page.wait_for_selector(".item >> text=Thank you.")
        assert "Ada" in str(found.server.chats[-1])
        await read_tools(visitor)
        assert visitor.faults == []


async def test_a_session_that_is_in_the_archive_only_is_got_and_read(tmp_path: Path, archive_url: str) -> None:
    desktop, laptop = ArchiveMachine(tmp_path / "desktop", archive_url), ArchiveMachine(tmp_path / ".ollm", archive_url)
    theirs = desktop.record("What is **theirs**?", "A plan.", workspace="/somewhere/project")
    desktop.run("push")
    laptop.record("Ours", workspace="/elsewhere/project")
    laptop.run("push")
    laptop.ollm("sessions", "list")
    async with daemon(tmp_path) as found, chromium() as browser, visit(browser, found) as visitor:
        page = visitor.page
        assert "archive: postgres on" in await page.locator(f".sessions li[data-id='{theirs}'] .about").inner_text()
        assert await page.locator(".sessions li .about >> text=archive:").count() == 1
        await page.click(f".sessions li[data-id='{theirs}'] a")
        await page.wait_for_selector("ollm-pull-card >> text=in the team archive: postgres on")
        assert not await page.locator("ollm-composer").is_visible()
        await page.fill("ollm-pull-card input", str(found.workspace))
        await page.click("ollm-pull-card >> text=Get it")
        await page.wait_for_selector(".item >> text=A plan.")
        assert await page.locator("ollm-composer").is_visible()
        assert visitor.faults == []
