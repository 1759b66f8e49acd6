"""Makes docs/screen*.svg and the films docs/demo.svg and docs/reading.svg: scripted talks, run for real on a terminal
of their own. `make pictures` runs it."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.cli.running import Runner, running  # noqa: E402 - the root of the project is no package
from tests.cli.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, Terminal, at_terminal  # noqa: E402
from tests.cli.test_reading_time import LONG, SlowReader  # noqa: E402
from tests.servers.answers import Answer  # noqa: E402

SIZE = (100, 36)
CELL = (8.4, 18.0)  # width and height of a character
LOOK = {"COLORTERM": "truecolor", "NO_COLOR": ""}
INKS = {
    "dark": {
        "default": "#d4d4d4", "ground": "#1b1d23", "black": "#3b3f4a", "red": "#f07178", "green": "#9ece6a",
        "brown": "#e0af68", "blue": "#7aa2f7", "magenta": "#bb9af7", "cyan": "#7dcfff", "white": "#d4d4d4",
        "brightblack": "#878d9c",
    },
    "light": {
        "default": "#2b2b2b", "ground": "#fbfbf8", "black": "#2b2b2b", "red": "#b3261e", "green": "#2e7d32",
        "brown": "#9a6700", "blue": "#1f5fbf", "magenta": "#8036a8", "cyan": "#0b7285", "white": "#5f6368",
        "brightblack": "#6e737b",
    },
}  # fmt: skip
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
TESTS = "printf 'test_one ok\\ntest_many FAILED\\n  assert total([1, 2]) == 3\\n1 failed\\n'; exit 1"
SCRIPT = [
    Answer(thinking="Let me run the tests first.", calls=[("shell", {"command": TESTS})]),
    Answer(
        text="`total` keeps only the **last** price: line 4 assigns where it should add.\n",
        calls=[("edit_file", {"path": "shop/cart.py", "edits": EDITS})],
    ),
    "Done: `total` adds them up now.",
    PLAN,
]

LATER_SHOTS = (
    ("screen-sessions", (SIZE[0], 14), ("Resume a chat", "Esc new chat"), ("-r",)),
    ("screen-resume", (SIZE[0], 40), ("Resumed", "code·ask"), ("-c",)),
    ("screen-narrow", (40, 20), ("Resumed", "code·ask"), ("-c",)),
)  # file, size, what to wait for, arguments


ASKED_SHOTS = (("screen-80", (80, 24), "dark"), ("screen-light", (120, 40), "light"))


class Picture(NamedTuple):
    """The cells of a terminal, row by row."""

    rows: list[list[Any]]


class Frame(NamedTuple):
    """A picture of the film, and how long it stands."""

    picture: Picture
    seconds: float


async def talk(directory: Path) -> dict[str, str]:
    """Each picture by the name of its file."""
    async with running(directory, SCRIPT, model="qwen3:8b") as runner:
        make_project(runner.workspace)
        runner.home.mkdir(exist_ok=True)
        shots: dict[str, Picture] = {}
        film = await film_chat(runner, shots)
        for name, size, wanted, arguments in LATER_SHOTS:
            async with at_terminal(runner, *arguments, size=size, OLLM_MODEL="qwen3:8b", **LOOK) as terminal:
                await terminal.wait_for(*wanted)
                await terminal.settle(0.5)
                shots[name] = taken(terminal, size[1])
                terminal.type(CTRL_C if name == "screen-sessions" else CTRL_D)
                await terminal.ended()
        drawings = {name: drawn(picture) for name, picture in shots.items()}
    for name, size, theme in ASKED_SHOTS:
        drawings[name] = drawn(await shoot_question(directory / name, size, theme), theme)
    return {**drawings, "demo": draw_film(film), "reading": draw_film(await film_reading(directory / "reading"))}


async def film_reading(directory: Path) -> list[Frame]:
    """The status line while a slow server reads a long message, until Esc."""
    directory.mkdir()
    film: list[Frame] = []
    async with running(directory, SlowReader(), model="qwen3:8b") as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("provider: {contextWindow: 32768}\n", encoding="utf-8")
        async with at_terminal(runner, "chat", size=(100, 12), OLLM_MODEL="qwen3:8b", **LOOK) as terminal:
            terminal.type("Good morning." + ENTER)
            await terminal.wait_for("Fine.")
            terminal.paste(LONG)
            terminal.type(ENTER)
            await terminal.wait_for("s left")
            for _ in range(12):
                film.append(Frame(taken(terminal, 12), 0.5))
                await terminal.settle(0.5)
            terminal.type(ESCAPE)
            await terminal.wait_for(gone="Esc stops")
            film.append(Frame(taken(terminal, 12), 2))
            terminal.type(CTRL_D)
            await terminal.ended()
    return film


async def shoot_question(directory: Path, size: tuple[int, int], theme: str) -> Picture:
    """The question whether a change may be made, in a theme and a size."""
    directory.mkdir()
    async with running(directory, SCRIPT, model="qwen3:8b") as runner:
        make_project(runner.workspace)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(f"screen:\n  theme: {theme}\n", encoding="utf-8")
        arguments = ("--allow", "shell", "Why is the total wrong? @shop/cart.py")
        async with at_terminal(runner, *arguments, size=size, OLLM_MODEL="qwen3:8b", COLUMNS="", **LOOK) as terminal:
            await terminal.wait_for("[y] yes")
            await terminal.settle(0.5)
            return taken(terminal, size[1])


def make_project(workspace: Path) -> None:
    (workspace / "shop").mkdir()
    (workspace / "shop" / "cart.py").write_text(BEFORE, encoding="utf-8")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


async def film_chat(runner: Runner, shots: dict[str, Picture]) -> list[Frame]:
    """A first chat, with the pictures of its main states."""
    film: list[Frame] = []
    async with at_terminal(runner, "--allow", "shell", size=SIZE, OLLM_MODEL="qwen3:8b", **LOOK) as terminal:

        async def shoot(seconds: float) -> Picture:
            await terminal.settle(0.5)
            film.append(Frame(taken(terminal), seconds))
            return film[-1].picture

        await terminal.wait_for("qwen3:8b @")
        shots["screen-start"] = Picture((await shoot(1.5)).rows[:12])
        for part in ("Why is", " the total", " wrong?", " @shop/cart.py "):
            terminal.type(part)
            await terminal.wait_for(part.strip())
            await shoot(0.5)
        terminal.type(ENTER)
        await terminal.wait_for("[y] yes")
        shots["screen"] = await shoot(4)
        terminal.type("y")
        await terminal.wait_for("adds them up now.", gone="[y] yes")
        await shoot(2.5)
        terminal.type("And the tests?" + ENTER)
        await terminal.wait_for("tests/test_cart.py", gone="· Esc stops")
        await shoot(3)
        terminal.type("/context" + ENTER)
        await terminal.wait_for("tokens used", "████")
        shots["screen-answer"] = await shoot(4)
        terminal.type(CTRL_D)
        await terminal.ended()
    return film


def taken(terminal: Terminal, rows: int = SIZE[1]) -> Picture:
    """The screen as it is; the port of the moment is not worth a change of the picture."""
    lines = []
    for row in range(rows):
        cells = [terminal.paper.buffer[row][column] for column in range(terminal.paper.columns)]
        text = "".join(cell.data or " " for cell in cells)
        if found := re.search(r"127\.0\.0\.1:\d+", text):
            shown = "localhost:8080"
            kept = [cells[found.start()]._replace(data=letter) for letter in shown]
            pad = [cells[-1]._replace(data=" ")] * (len(found[0]) - len(shown))
            gap = text.find("  ", found.end())  # what stands at the right end stays there
            gap = gap if gap > 0 else len(cells)
            cells = cells[: found.start()] + kept + cells[found.end() : gap] + pad + cells[gap:]
        if found := re.search(r"/\S+/project", text):
            kept = [cells[found.start()]._replace(data=letter) for letter in "~/project"]
            pad = [cells[-1]._replace(data=" ")] * (len(found[0]) - len(kept))
            cells = cells[: found.start()] + kept + cells[found.end() :] + pad
        lines.append(cells)
    while lines and not "".join(cell.data for cell in lines[-1]).strip():
        lines.pop()
    return Picture(lines)


def drawn(picture: Picture, theme: str = "dark") -> str:
    """Every run of a style at its own place: no renderer can lose a blank."""
    rows = [part for number, row in enumerate(picture.rows) for part in draw_row(row, number, INKS[theme])]
    return "\n".join([*head(max(map(len, picture.rows)), len(picture.rows), INKS[theme]), *rows, "</g>", "</svg>", ""])


def head(columns: int, rows: int, ink: dict[str, str]) -> list[str]:
    width, height = columns * CELL[0] + 24, rows * CELL[1] + 28
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">',
        f'<rect width="100%" height="100%" rx="8" fill="{ink["ground"]}"/>',
        '<g font-family="Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14">',
    ]


def draw_row(row: list[Any], number: int, ink: dict[str, str]) -> list[str]:
    parts, column = [], 0
    for look, run in groupby(row, style):
        text = "".join(cell.data for cell in run)
        parts += draw_run(text, column, number, look, ink)
        column += len(text)
    return parts


def draw_film(frames: list[Frame], theme: str = "dark") -> str:
    """One picture after the other, over and over, without a script. A row stands as long as it is the same; where
    nothing moves the last picture is seen."""
    ink, whole = INKS[theme], sum(frame.seconds for frame in frames)
    columns, rows = (
        max(len(row) for frame in frames for row in frame.picture.rows),
        max(len(f.picture.rows) for f in frames),
    )
    parts = head(columns, rows, ink)
    for number in range(rows):
        shown = [
            "\n".join(draw_row(frame.picture.rows[number], number, ink)) if number < len(frame.picture.rows) else ""
            for frame in frames
        ]
        start = 0.0
        place = 0
        for drawing, run in groupby(shown):
            count = len(list(run))
            seconds = sum(frame.seconds for frame in frames[place : place + count])
            if drawing:
                parts += animate(drawing, start / whole, (start + seconds) / whole, whole)
            start, place = start + seconds, place + count
    return "\n".join([*parts, "</g>", "</svg>", ""])


def animate(drawing: str, begin: float, end: float, whole: float) -> list[str]:
    """A drawing that is seen from one share of the film to another."""
    if begin <= 0 and end >= 1:
        return [drawing]
    times = [(0.0, "hidden"), (begin, "visible"), (end, "hidden")]
    kept = [(at, what) for at, what in times if at < 1 and not (at == 0 and what == "hidden" and begin <= 0)]
    values, at = ";".join(what for _, what in kept), ";".join(f"{time:.4f}".rstrip("0").rstrip(".") for time, _ in kept)
    last = "visible" if end >= 1 - 1e-9 else "hidden"
    timing = f'calcMode="discrete" dur="{whole:g}s" repeatCount="indefinite"'
    moving = f'<animate attributeName="visibility" values="{values}" keyTimes="{at}" {timing}/>'
    return [f'<g visibility="{last}">{moving}', drawing, "</g>"]


def draw_run(text: str, column: int, row: int, look: tuple[str, str, bool, bool], ink: dict[str, str]) -> list[str]:
    """A run of one style: its ground, and each word group where it stands."""
    front, ground, bold, reverse = look
    colour, behind = pick(front, ink, "default"), pick(ground, ink, "")
    if reverse:
        colour, behind = ink["ground"], colour
    top, left = 14 + row * CELL[1], 12 + column * CELL[0]
    parts = []
    if behind:
        box = f'width="{len(text) * CELL[0]:.1f}" height="{CELL[1]:.0f}"'
        parts.append(f'<rect x="{left:.1f}" y="{top:.0f}" {box} fill="{behind}"/>')
    weight = ' font-weight="bold"' if bold else ""
    for found in re.finditer(r"\S+(?: \S+)*", text):
        place = (
            f'x="{left + found.start() * CELL[0]:.1f}" y="{top + 13:.0f}" textLength="{len(found[0]) * CELL[0]:.1f}"'
        )
        parts.append(f'<text {place} fill="{colour}"{weight}>{escape(found[0])}</text>')
    return parts


def pick(name: str, ink: dict[str, str], otherwise: str) -> str:
    if name == "default":
        return ink.get(otherwise, "")
    return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else ink.get(name, ink.get(name.removeprefix("bright"), ""))


def style(cell: Any) -> tuple[str, str, bool, bool]:
    return cell.fg, cell.bg, cell.bold, cell.reverse


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, drawing in asyncio.run(talk(Path(directory))).items():
            (HERE / f"{name}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
