"""The parts of the screen that are painted again and again."""

from pathlib import Path
from typing import Any

from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.paint import Painter
from ollm.cli.screen.recap import render_message, render_recap
from ollm.cli.screen.transcript import ContextFill, Transcript
from ollm.cli.screen.view import (
    format_status_line,
    read_git_branch,
    render_header,
    style_status_line,
)
from ollm.domain.events import ContextUsage
from ollm.domain.tools import Todo
from ollm.runtime.base import Status
from tests.cli.screen.samples import PLAIN, Clock, status


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_git_branch(tmp_path) == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "HEAD").write_text("ref: refs/heads/fix/one\n")
    (tmp_path / ".git").write_text("gitdir: real\n")
    assert read_git_branch(tmp_path) == "fix/one"
    (tmp_path / "real" / "HEAD").write_text("0123456789abcdef\n")
    assert read_git_branch(tmp_path) == "01234567"


def test_the_bar_and_a_level_that_asks_less_stand_out_in_the_status_line() -> None:
    line = " ██░░┊ 30% · code·yolo · yolo-7b "
    half = style_status_line(line, ContextFill(used=30, limit=100, mark=80), "yolo")
    full = style_status_line(line, ContextFill(used=80, limit=100, mark=80), "ask")

    assert "".join(part[1] for part in half) == "".join(part[1] for part in full) == line
    assert [part[:2] for part in half if part[0] != "class:status"] == [
        ("class:bar", "██"),
        ("class:bold-approval", "yolo"),
    ]
    assert [part[:2] for part in full if part[0] != "class:status"] == [("class:bar-full", "██")]


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


NARROW_TIPS = "▌ /help for commands"


def describe(model: str, provider: str, width: int = 80, workspace: str = "/work-here") -> str:
    status = Status(
        session_id=None,
        title="",
        model=model,
        provider=provider,
        base_url="http://box:8080/v1",
        window=32_768,
        mode="code",
        approval="ask",
        workspace=workspace,
    )
    return render_header(status, "main", Painter(lambda: width, colour=False))


def test_the_header_names_model_window_folder_and_branch() -> None:
    shown = describe("/models/Qwen2.5-Coder.gguf", "openai")

    assert "Qwen2.5-Coder · 32,768-token context · box:8080" in shown
    assert "/work-here · main" in shown
    narrow = describe("qwen3:8b", "openai", width=40).splitlines()
    assert narrow[1:4] == ["▌ qwen3:8b · 32,768-token context", "▌ /work-here · main", NARROW_TIPS]
    assert all(len(line) <= 40 for line in describe("m" * 90, "openai", width=40).splitlines())


def message(number: int, role: str, text: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}, {"type": "thinking", "text": "hidden"}]
    return {"id": number, "role": role, "parts": parts, "toolCalls": []}


def test_what_was_attached_is_named_and_not_said_again() -> None:
    sent = message(1, "user", "look")
    sent["parts"] += [{"type": "text", "text": "\n\n[src/a.py]\nprint(1)\n"}, {"type": "text", "text": " and more"}]

    assert render_message(sent, PLAIN) == "› look and more\n  + src/a.py\n\n"


def test_a_long_paste_is_shown_by_its_first_and_last_lines() -> None:
    text = "\n".join([f"line {number}" for number in range(1, 201)] + ["Summarise it."])
    shown = render_recap([message(1, "user", text)], PLAIN)

    assert shown.split("\n")[:6] == [
        "› line 1", "  line 2", "  line 3", "  … 196 more lines (/history)", "  line 200", "  Summarise it.",
    ]  # fmt: skip
    assert "more lines" not in render_recap([message(1, "user", "a\n" * 6 + "b")], PLAIN)
