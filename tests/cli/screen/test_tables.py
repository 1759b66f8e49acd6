"""Tables in a narrow chat: no word is broken, bars keep their scale, and what does not fit becomes records."""

import io
from pathlib import Path

from rich.console import Console

from ollm.cli.screen.markdown import ChatMarkdown
from ollm.runtime.commands.base import render_table
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal

PARTS = [("instructions", "825", "█" * 10), ("assistant messages", "2,475", "█" * 30), ("todos", "1", "")]
SNAPSHOT = ("5a0ea5d8", "just now", "5866", "manual", "18 messages, 0 checkpoints; last asked: why is it wrong")


def render(text: str, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(ChatMarkdown(text))
    return [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]


def test_bars_shrink_to_the_room_there_is_and_keep_their_scale() -> None:
    table = render_table(("part", "tokens", ""), PARTS)

    bars = [line.count("█") for line in render(table, 38) if "█" in line]
    assert bars == [round(max(bars) / 3), max(bars)]
    assert max(bars) >= 8
    assert [line.count("█") for line in render(table, 90) if "█" in line] == [10, 30]


def test_columns_wrap_between_words_only() -> None:
    lines = render(render_table(("tool", "risk", "what"), [("read_many_files", "low", SNAPSHOT[4])]), 50)

    words = {word for line in lines for word in line.split()}
    assert {"read_many_files", "checkpoints;", "messages,"} <= words
    assert max(map(len, lines)) <= 50


def test_a_row_that_would_be_a_ribbon_is_a_record() -> None:
    table = render_table(("snapshot", "taken", "tokens", "why", "what"), [SNAPSHOT, (*SNAPSHOT[:4], "")])

    first, *rest = render(table, 38)
    assert first == "5a0ea5d8"
    assert rest[:3] == ["  taken   just now", "  tokens  5866", "  why     manual"]
    assert rest[3].startswith("  what    18 messages")
    assert rest[-1] == "  why     manual"
    assert render(table, 100)[0].split() == ["snapshot", "taken", "tokens", "why", "what"]


def test_a_long_word_goes_on_in_the_next_line() -> None:
    lines = render(render_table(("path", "size"), [("x" * 60, "1")]), 40)

    assert sum(line.count("x") for line in lines) == 60


async def test_reports_are_readable_in_forty_columns(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hello."]) as runner, at_terminal(runner, "--new", size=(40, 20)) as terminal:
        await terminal.wait_for("code·ask")
        terminal.type("hi" + ENTER)
        await terminal.wait_for("● Hello.")
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
