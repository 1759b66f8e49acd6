"""The status line and its bar."""

from ollm.cli.screen.status import format_bar, format_status_line, join_parts
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    ContextUsage,
)
from tests.cli.screen.samples import PLAIN, status


def test_the_status_line_says_what_matters_first_and_fits() -> None:
    shown = Transcript(PLAIN, lambda _: None)
    shown.apply_status(status())
    line = format_status_line(status(), shown, "main", 0, 200)

    assert line == " █░░░░░░░┊░ 10% · code·ask · qwen3 @ box:8080 · ⎇ main · A 日本 title"
    assert "secret" not in line
    assert "qwen3 @ box:8080 · sandbox full · ⎇ main" in format_status_line(
        status(sandbox="full"), shown, "main", 0, 200
    )
    shown.show(ContextUsage(used=90, limit=100, window=100, trigger=80, reused_share=0.5))
    assert "qwen3 @ box:8080 · cache 50%" in format_status_line(status(), shown, "", 0, 200)
    assert format_status_line(status(), shown, "main", 2, 30).startswith(" 2 queued · ████┊ 90% · code")
    assert all(len(format_status_line(status(), shown, "main", 0, width)) < width for width in range(8, 90))
    assert format_status_line(None, shown, "", 0, 80) == " connecting…"


def test_the_bar_marks_where_compression_starts() -> None:
    assert format_bar(0, 100, 50) == "░░░░░┊░░░░"
    assert format_bar(100, 100, 50) == "█" * 10
    assert format_bar(5, 0, 0) == ""
    assert join_parts(["a", "b" * 50], 20, "title") == f" a · {'b' * 13}…"
    assert join_parts(["a", "b", "c", "d" * 50], 20, "title") == " a · b · c"
    assert join_parts(["a"], 20, "t" * 50) == " a · ttttttttttttt…"
    assert join_parts(["a" * 10], 20, "t" * 50) == " aaaaaaaaaa"
