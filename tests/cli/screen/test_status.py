"""The status line and its bar."""

import pytest
from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.status import (
    fill_line,
    format_bar,
    format_percent,
    format_server,
    format_status_line,
    join_parts,
    shorten_model,
)
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    ContextUsage,
)
from ollm.domain.tools import Todo
from tests.cli.screen.samples import PLAIN, Clock, status


def test_the_status_line_says_what_matters_first_and_fits() -> None:
    shown = Transcript(PLAIN, lambda _: None)
    shown.apply_status(status())
    line = format_status_line(status(), shown, "main", 0, 200)

    assert line.startswith(" █░░░░░░░┊░ 10% · code·ask · qwen3 @ box:8080   ")
    assert line.endswith("   A 日本 title · ⎇ main ")
    assert get_cwidth(line) == 199, "it fills the width"
    assert "secret" not in line
    assert "qwen3 @ box:8080 · sandbox full  " in format_status_line(status(sandbox="full"), shown, "main", 0, 200)
    shown.show(ContextUsage(used=90, limit=100, window=100, trigger=80, reused_share=0.5))
    assert "qwen3 @ box:8080 · cache 50%" in format_status_line(status(), shown, "", 0, 200)
    assert format_status_line(status(), shown, "main", 2, 30).startswith(" 2 queued · ████┊ 90% · code")
    assert all(len(format_status_line(status(), shown, "main", 0, width)) < width for width in range(8, 90))
    assert format_status_line(None, shown, "", 0, 80) == " connecting…"


def test_the_bar_marks_where_compression_starts() -> None:
    assert format_bar(0, 100, 50) == "░░░░░┊░░░░"
    assert format_bar(100, 100, 50) == "█" * 10
    assert format_bar(5, 0, 0) == ""
    assert join_parts(["a", "b" * 50], 20) == f" a · {'b' * 13}…"
    assert join_parts(["a", "b", "c", "d" * 50], 20) == " a · b · c"


@pytest.mark.parametrize(
    ("used", "limit", "starts", "bar"),
    [
        (0, 100, 80, "░░░░░░░░┊░"),
        (4, 100, 80, "░░░░░░░░┊░"),
        (50, 100, 80, "█████░░░┊░"),
        (80, 100, 80, "████████┊░"),
        (90, 100, 80, "█████████░"),
        (300, 100, 80, "██████████"),
        (0, 100, 300, "░░░░░░░░░┊"),
        (0, 0, 0, ""),
        (5, -1, 0, ""),
    ],
)
def test_the_bar_fills_from_the_left_and_marks_the_start_of_compaction(
    used: int, limit: int, starts: int, bar: str
) -> None:
    assert format_bar(used, limit, starts) == bar


@pytest.mark.parametrize(("used", "limit", "text"), [(0, 100, "0%"), (999, 1000, "99%"), (5, 0, ""), (1, 1, "100%")])
def test_percent_is_rounded_down(used: int, limit: int, text: str) -> None:
    assert format_percent(used, limit) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("qwen3:8b", "qwen3:8b"),
        ("/models/Qwen.GGUF", "Qwen.GGUF"),
        ("C:\\models\\qwen.gguf", "qwen"),
        ("org/name", "org/name"),
        ("a\x1bb", "a\\x1bb"),
    ],
)
def test_a_model_file_goes_by_its_name(name: str, short: str) -> None:
    assert shorten_model(name) == short


def test_a_server_goes_by_its_address_or_its_kind() -> None:
    assert format_server(status()) == "box:8080"
    assert format_server(status(base_url="")) == "openai"


def test_what_waits_and_how_fast_it_writes_is_said() -> None:
    clock = Clock()
    shown = Transcript(PLAIN, lambda _: None, clock)
    assert format_status_line(None, shown, "", 2, 80) == " connecting… · 2 queued"
    assert format_status_line(None, shown, "", 0, 80, waited=0.9) == " connecting…"
    assert format_status_line(None, shown, "", 2, 80, waited=3.2) == " connecting… 3 s · 2 queued"
    shown.apply_status(status(todos=(Todo(id="1", text="a", status="done"), Todo(id="2", text="b", status="open"))))
    for _ in range(10):
        shown.live.add_answer("x")
        clock.time += 0.1
    shown.live.speed.finish_answer()
    line = format_status_line(status(title=""), shown, "", 0, 200)
    assert line.endswith(" · qwen3 @ box:8080 · 10 tok/s · todo 1/2")
    assert " @ " not in format_status_line(status(title=""), shown, "", 0, 59)
    assert " @ " in format_status_line(status(title=""), shown, "", 0, 60)


def test_a_title_is_cut_or_left_out() -> None:
    assert fill_line(" a", "", "title", 20) == " a           title "
    assert fill_line(" aaa", "", "t" * 13, 20) == " aaa  ttttttttttt… "
    assert fill_line(" aaaa", "", "t" * 13, 20) == " aaaa"
    assert fill_line(" a", "main", "t" * 50, 20) == " a            main "
    assert fill_line(" a", "a-branch-that-is-long", "title", 20) == " a"
    assert join_parts(["a" * 30], 20) == " " + "a" * 18
