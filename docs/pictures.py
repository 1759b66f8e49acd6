"""Makes docs/screen.svg: a scripted talk, run for real on a terminal of its own. `make pictures` runs it."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.cli.running import running  # noqa: E402 - the root of the project is no package
from tests.cli.terminal import ENTER, Terminal, at_terminal  # noqa: E402
from tests.servers.answers import Answer  # noqa: E402

SIZE = (100, 36)
BEFORE = "def total(prices):\n    sum = 0\n    for price in prices:\n        sum = price\n    return sum\n"
EDITS = [{"target": "sum = price", "replacement": "sum += price"}]
SCRIPT = [
    Answer(thinking="Let me look at the file first.", calls=[("read_file", {"path": "shop/cart.py"})]),
    Answer(
        text="`total` keeps only the **last** price: line 4 assigns where it should add.\n",
        calls=[("edit_file", {"path": "shop/cart.py", "edits": EDITS})],
    ),
]


async def talk(directory: Path) -> Text:
    async with running(directory, SCRIPT, model="qwen3:8b") as runner:
        (runner.workspace / "shop").mkdir()
        (runner.workspace / "shop" / "cart.py").write_text(BEFORE, encoding="utf-8")
        (runner.workspace / ".git").mkdir()
        (runner.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        async with at_terminal(runner, "chat", size=SIZE, OLLM_MODEL="qwen3:8b") as terminal:
            await terminal.wait_for("qwen3:8b @")
            terminal.type("Why is the total wrong? @shop/cart.py" + ENTER)
            await terminal.wait_for("[y] yes")
            return painted(terminal)


def painted(terminal: Terminal) -> Text:
    """The screen with its colours; the port of the moment is not worth a change of the picture."""
    text = Text()
    for row in range(SIZE[1]):
        line = Text()
        cells = (terminal.paper.buffer[row][column] for column in range(SIZE[0]))
        for look, run in groupby(cells, style):
            line.append("".join(cell.data for cell in run), look)
        line.rstrip()
        text.append_text(line)
        text.append("\n")
    text.rstrip()
    port = re.search(r"127\.0\.0\.1:\d+", text.plain)
    if port:
        before, after = text[: port.start()], text[port.end() :]
        text = before + Text("localhost:8080", style="reverse") + after
    return text


def style(cell) -> Style:  # noqa: ANN001 - a named tuple of pyte
    names = {"brown": "yellow", "brightblack": "bright_black", "brightbrown": "bright_yellow"}

    def colour(name: str) -> str | None:
        if name == "default":
            return None
        return names.get(name, f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else name)

    return Style(
        color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        text = asyncio.run(talk(Path(directory)))
    console = Console(record=True, width=SIZE[0], file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text)
    picture = console.export_svg(title="ollm", unique_id="ollm")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # nothing is fetched to show it
    picture = re.sub(r"<!--.*?-->\s*", "", picture, flags=re.DOTALL)
    (HERE / "screen.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
