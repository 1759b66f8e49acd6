"""Makes docs/screen*.svg: a scripted talk, run for real on a terminal of its own. `make pictures` runs it."""

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
from tests.cli.terminal import CTRL_D, ENTER, Terminal, at_terminal  # noqa: E402
from tests.servers.answers import Answer  # noqa: E402

SIZE = (100, 36)
PLAN = """\
## What to do

1. Add where it assigns: `sum += price`.
2. Prove it:

```python
def test_the_total_is_the_sum_of_all_prices() -> None:
    assert total([1, 2, 3]) == 6
```

| file | change | risk |
|------|--------|------|
| `shop/cart.py` | one line | low |
| `tests/test_cart.py` | new | none |
"""
BEFORE = "def total(prices):\n    sum = 0\n    for price in prices:\n        sum = price\n    return sum\n"
EDITS = [{"target": "sum = price", "replacement": "sum += price"}]
SCRIPT = [
    Answer(thinking="Let me look at the file first.", calls=[("read_file", {"path": "shop/cart.py"})]),
    Answer(
        text="`total` keeps only the **last** price: line 4 assigns where it should add.\n",
        calls=[("edit_file", {"path": "shop/cart.py", "edits": EDITS})],
    ),
    "Done: `total` adds them up now.",
    PLAN,
]


async def talk(directory: Path) -> dict[str, Text]:
    """A picture of each main state, by the name of its file."""
    async with running(directory, SCRIPT, model="qwen3:8b") as runner:
        (runner.workspace / "shop").mkdir()
        (runner.workspace / "shop" / "cart.py").write_text(BEFORE, encoding="utf-8")
        (runner.workspace / ".git").mkdir()
        (runner.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        async with at_terminal(runner, "chat", size=SIZE, OLLM_MODEL="qwen3:8b") as terminal:
            await terminal.wait_for("qwen3:8b @")
            terminal.type("Why is the total wrong? @shop/cart.py" + ENTER)
            await terminal.wait_for("[y] yes")
            asked = painted(terminal)
            terminal.type("y")
            await terminal.wait_for("adds them up now.", gone="[y] yes")
            terminal.type("And the tests?" + ENTER)
            await terminal.wait_for("tests/test_cart.py", gone="· Esc stops")
            terminal.type("/context" + ENTER)
            await terminal.wait_for("tokens used", "████")
            answered = painted(terminal)
            terminal.type(CTRL_D)
            await terminal.ended()
        async with at_terminal(runner, "chat", size=(SIZE[0], 12), OLLM_MODEL="qwen3:8b") as terminal:
            await terminal.wait_for("Resume which session?", "Esc leave")
            return {"screen": asked, "screen-answer": answered, "screen-sessions": painted(terminal, 12)}


def painted(terminal: Terminal, rows: int = SIZE[1]) -> Text:
    """The screen with its colours; the port of the moment is not worth a change of the picture."""
    text = Text()
    for row in range(rows):
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
    def colour(name: str) -> str | None:
        if name == "default":
            return None
        if re.fullmatch(r"[0-9a-f]{6}", name):
            return f"#{name}"
        return name.replace("bright", "bright_").replace("brown", "yellow")

    return Style(
        color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in asyncio.run(talk(Path(directory))).items():
            (HERE / f"{name}.svg").write_text(drawn(text), encoding="utf-8")


def drawn(text: Text) -> str:
    console = Console(record=True, width=SIZE[0], file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text)
    picture = console.export_svg(title="ollm", unique_id="ollm")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # nothing is fetched to show it
    return re.sub(r"<!--.*?-->\s*", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
