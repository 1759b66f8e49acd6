"""Takes the pictures of the pages in docs/ from a scripted talk; Chromium must be at hand."""

import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.daemon.browser import chromium, visit  # noqa: E402
from tests.daemon.running import daemon  # noqa: E402
from tests.servers.answers import Answer  # noqa: E402

CART = "def total(items):\n    return sum(item.price * item.count for item in items)\n"
TEXT = """`total()` adds prices as **floats**, so rounding creeps in:

```python
def total(items: list[Item]) -> float:
    return sum(item.price * item.count for item in items)
```

1. Use `Decimal` for prices
2. Round once, at the end
"""
EDIT = {"target": "return sum(", "replacement": "return round_once("}
SCRIPT = [
    Answer(thinking="Read it first.", calls=[("read_file", {"path": "cart.py"})]),
    Answer(text=TEXT),
    Answer(calls=[("edit_file", {"path": "cart.py", "edits": [EDIT]})]),
    "Done.",
]


async def take_pictures() -> None:
    place = Path(tempfile.mkdtemp(prefix="ollm-pictures-"))
    async with daemon(place, SCRIPT) as found, chromium() as browser:
        (found.workspace / "cart.py").write_text(CART, encoding="utf-8")
        async with visit(browser, found, viewport={"width": 1280, "height": 720}) as visitor:
            page = visitor.page
            await visitor.open_session(await found.open())
            await visitor.say("Why is the total of the cart wrong?")
            await page.wait_for_selector(".item ol")
            await page.click(".bar button[aria-label=Context].icon-button")
            await page.wait_for_selector(".plot")
            await page.screenshot(path=str(ROOT / "docs" / "web-context.png"))
            await page.click(".panel button[aria-label=Close]")
            await visitor.say("Fix it")
            await page.wait_for_selector("ollm-confirmation")
            await page.screenshot(path=str(ROOT / "docs" / "web-session.png"))
            await page.emulate_media(color_scheme="dark")
            await page.set_viewport_size({"width": 360, "height": 720})
            await page.wait_for_timeout(300)
            await page.evaluate("document.querySelector('ollm-messages').toEnd()")
            await page.screenshot(path=str(ROOT / "docs" / "web-phone.png"))


if __name__ == "__main__":
    asyncio.run(take_pictures())
