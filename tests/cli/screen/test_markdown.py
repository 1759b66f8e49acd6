"""Headings of a chat: at the left, without a frame."""

import io
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ollm.cli.screen.diff_view import DiffView
from ollm.cli.screen.markdown import ChatMarkdown, MarkdownBlocks
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.themes import THEMES
from ollm.runtime.commands.base import render_table
from ollm.system.terminal_text import clean_lines, clean_prose
from ollm.tools.files.file_change import make_diff
from tests.cli.command import ollm
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer

LINES = st.lists(st.sampled_from(["text", "- item", "  more", "1. one", "", "```py", "```", "~~~", "# head", "   ```"]))


@given(lines=LINES, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_whatever_is_fed_comes_out_once_and_in_order(lines: list[str], cuts: list[int]) -> None:
    text = "\n".join(lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    blocks, out = MarkdownBlocks(), []
    for start, end in pairwise(places):
        out += blocks.feed(text[start:end])
    out.append(blocks.finish())

    assert "".join("\n".join(out).split()) == "".join(text.split())
    assert blocks.open == ""


def test_code_is_one_block_however_many_blank_lines_it_has() -> None:
    blocks = MarkdownBlocks()

    assert blocks.feed("Look:\n```py\na\n\n\nb\n") == ["Look:"]
    assert blocks.feed("```\nafter") == ["```py\na\n\n\nb\n```"]
    assert blocks.open == "after"


def test_a_list_goes_on_after_a_blank_line_and_ends_at_plain_text() -> None:
    blocks = MarkdownBlocks()

    assert blocks.feed("1. one\n\n   ```\n   code\n   ```\n2. two\n\nPlain\n") == [
        "1. one\n\n   ```\n   code\n   ```\n2. two"
    ]
    assert blocks.finish() == "Plain"


def test_the_end_of_long_code_is_still_code() -> None:
    blocks = MarkdownBlocks()
    blocks.feed("```python\n" + "\n".join(f"line{number}" for number in range(50)))

    assert blocks.render_tail(3) == "```python\nline47\nline48\nline49"


DIFF = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-the old word\n+the new word\n end\n@@ -9 +9,2 @@\n last\n+added\n\\ No newline\n"


def render_diffs(diff: str, width: int, *, named: bool = False) -> str:
    return Painter(lambda: width, THEMES["plain"]).paint(DiffView(diff, "ansi_dark", named=named))


def test_a_narrow_terminal_gets_one_line_under_the_other() -> None:
    assert render_diffs(DIFF, 80).split("\n") == [
        "     1   same",
        "     2 - the old word",
        "     2 + the new word",
        "     3   end",
        "       ⋯",
        "     9   last",
        "    10 + added",
        "         no newline at the end",
        "",
    ]


TEXT_LINES = st.lists(
    st.sampled_from(["", " ", "a", "a  ", "\ta", "    a", "a b", "a  b", "漢字 " * 9, "-- a", "++ a"])
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end * bool(lines), TEXT_LINES, st.sampled_from(["", "\n"]))
SHOWN_ROW = re.compile(r"  ([ \d]{4}) ([-+ ]) (.*)")
NO_NEWLINE = "no newline at the end"


def apply_shown(old: str, shown: str) -> str:
    """Apply the rows that a person sees to a text, as the person would: by their numbers and marks."""
    rows: list[list[str]] = []
    for line in shown.removesuffix("\n").split("\n"):
        found = SHOWN_ROW.fullmatch(line)
        if found and found[1].strip():
            rows.append([found[1], found[2], found[3], "\n"])
        elif line.strip() == NO_NEWLINE:
            rows[-1][3] = ""
        elif found:
            rows[-1][2] += found[3]
    left, out = old.splitlines(keepends=True), []
    taken = 0
    for number, mark, text, end in rows:
        while int(number) - 1 > (taken if mark == "-" else len(out)):
            out.append(left[taken])
            taken += 1
        if mark == "+":
            out.append(text.replace("→   ", "\t").replace("·", " ") + end)
            continue
        if mark == " ":
            out.append(left[taken])
        assert text.replace("·", " ").rstrip() == left[taken].replace("\t", "→   " if mark == "-" else "    ").rstrip()
        taken += 1
    return "".join([*out, *left[taken:]])


@given(old=TEXTS, new=TEXTS, width=st.integers(32, 60))
def test_the_lines_that_are_shown_turn_the_old_text_into_the_new_one(old: str, new: str, width: int) -> None:
    shown = Painter(lambda: width, THEMES["plain"]).paint_diff(make_diff("x", old, new))

    assert apply_shown(old, shown) == new


def test_several_files_are_named_and_lines_that_look_like_names_are_lines() -> None:
    one = "--- a/one.txt\n+++ b/one.txt\n@@ -0,0 +1 @@\n+first\n"
    two = "--- a/two.sql\n+++ b/two.sql\n@@ -1,2 +1,2 @@\n same\n--- old note\n+++ new note\n"
    lines = [" ".join(line.split()) for line in render_diffs(one + two, 80, named=True).split("\n")]

    assert [line for line in lines if line.endswith((".txt", ".sql"))] == ["one.txt", "two.sql"]
    assert any("2 - -- old note" in line for line in lines)
    assert any("2 + ++ new note" in line for line in lines)


SNAPSHOT = ("5a0ea5d8", "just now", "5866", "manual", "18 messages, 0 checkpoints; last asked: why is it wrong")


def render_tables(text: str, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(ChatMarkdown(text))
    return [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]


def test_a_row_that_would_be_a_ribbon_is_a_record() -> None:
    table = render_table(("snapshot", "taken", "tokens", "why", "what"), [SNAPSHOT, (*SNAPSHOT[:4], "")])

    first, *rest = render_tables(table, 38)
    assert first == "5a0ea5d8"
    assert rest[:3] == ["  taken   just now", "  tokens  5866", "  why     manual"]
    assert rest[3].startswith("  what    18 messages")
    assert rest[-1] == "  why     manual"
    assert render_tables(table, 100)[0].split() == ["snapshot", "taken", "tokens", "why", "what"]


async def test_reports_and_html_are_readable_in_forty_columns(tmp_path: Path) -> None:
    answer = "Hello. Use Vec<String>.\n\n<div>\n  <b>Bye</b>\n</div>"
    async with running(tmp_path, [answer]) as runner, at_terminal(runner, "--new", size=(40, 20)) as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("hi" + ENTER)
        await terminal.wait_for("● Hello. Use Vec<String>.", "   <b>Bye</b>\n", "</div>")
        terminal.type("/status" + ENTER)
        await terminal.wait_for("approval: ask", "session: ")
        shown = terminal.text().rpartition("session: ")[2].splitlines()[0]
        (session,) = runner.sessions()
        assert shown == session["sessionId"][:8]
        terminal.type("/context snapshot" + ENTER + "/context list" + ENTER)
        await terminal.wait_for("  why     manual")
        terminal.type("/tools" + ENTER)
        await terminal.wait_for("write_todos", "  description")
        assert "read_many_files" in terminal.text().split()
        terminal.type(CTRL_D)
        await terminal.ended()


def test_joined_letters_stay_joined_in_prose_and_show_in_a_question() -> None:
    family = "👩\u200d👩\u200d👧"

    assert clean_prose(f"{family} می\u200cخواهم") == f"{family} می\u200cخواهم"
    assert clean_prose("r\u200dm \u200b\u202e👩\u200d\u200d👩") == "r\\u200dm \\u200b\\u202e👩\\u200d\\u200d👩"
    assert clean_lines(family) == "👩\\u200d👩\\u200d👧"


COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|4[0-7]|10[0-7])(?:;\d+)*m")
ANSWER = "It is `done`:\n\n```python\nprint('hi')  # comment\n```\n"


async def chat_bytes(directory: Path, theme: str = "", **variables: str) -> str:
    """What the terminal was sent in a short chat."""
    directory.mkdir()
    async with running(directory, [ANSWER]) as runner:
        if theme:
            ollm("config", "set", "screen.theme", theme, home=runner.home)
        async with at_terminal(runner, "chat", "--new", **{"COLORTERM": "", **variables}) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("show me" + ENTER)
            await terminal.wait_for("print('hi')", gone="· Esc stops")
            terminal.type(CTRL_D)
            await terminal.ended()
            return terminal.raw.decode()


async def test_dark_and_light_differ_in_sixteen_colours_and_plain_has_none(tmp_path: Path) -> None:
    dark = await chat_bytes(tmp_path / "dark", "dark", TERM="xterm-256color")
    light = await chat_bytes(tmp_path / "light", "light", TERM="linux")
    plain = await chat_bytes(tmp_path / "plain", "plain")
    without = await chat_bytes(tmp_path / "without", NO_COLOR="1")

    assert "\x1b[1;36m› " in dark
    assert "\x1b[1;34m› " in light
    assert not re.search(r"\x1b\[(?:\d+;)*9[1-7]m", light), "bright colours are lost on a light ground"
    assert COLOUR.search(dark)
    assert not COLOUR.search(plain)
    assert not COLOUR.search(without)
    assert not re.search(r"[34]8;[25];", dark + light)


def compute_contrast(*colours: str) -> float:
    """The contrast of two colours as WCAG defines it."""
    lights = []
    for colour in colours:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(lights) / min(lights)


CODE = """
class Cart(Base):  # all of them
    @cached
    def total(self, prices: list[int]) -> int:
        assert prices and not None, f"no {prices!r}"
        return sum(price * 1.5 for price in prices)
"""
RICH = f"# Title\n\n## Part\n\n### Section\n\n1. `code` and [a link](https://a.b)\n2. two\n\n> quote\n\n| a | b |\n|---|---|\n| c | d |\n\n```py{CODE}```\n"
GROUNDS = {"dark": ("000000", "1e1e1e", "282c34"), "light": ("ffffff", "fafafa", "fdf6e3")}


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_true_colours_are_readable_on_their_grounds_and_a_change_fills_its_lines(
    tmp_path: Path, theme: str
) -> None:
    edits = [{"target": "price * 1.5 for", "replacement": "price * 2 for"}]
    script = [Answer(text=RICH, calls=[("edit_file", {"path": "cart.py", "edits": edits})])]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "cart.py").write_text(CODE)
        ollm("config", "set", "screen.theme", theme, home=runner.home)
        async with at_terminal(runner, "go on", size=(80, 50), COLORTERM="truecolor", NO_COLOR="") as terminal:
            await terminal.wait_for("[y] yes", "1. code and a link")
            rows = [[terminal.paper.buffer[row][column] for column in range(80)] for row in range(50)]
    cells = [cell for row in rows for cell in row if not (cell.data.isspace() or "\u2500" <= cell.data <= "\u259f")]
    pairs = {(cell.fg, ground) for cell in cells for ground in ([cell.bg] if cell.bg != "default" else GROUNDS[theme])}
    coloured = {(ink, ground) for ink, ground in pairs if ink != "default"}
    changed = ["".join(cell.data for cell in row) for row in rows if all(cell.bg != "default" for cell in row[1:-1])]

    assert [pair for pair in coloured if compute_contrast(*pair) < 4.5] == []
    assert len({ink for ink, _ in coloured}) > 8
    assert [line.split()[:2] for line in changed] == [["6", "-"], ["6", "+"]]
    assert len({cell.bg for row in rows for cell in row}) > 5
