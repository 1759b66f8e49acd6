"""The transcript on the screen, live and at rest."""

from pathlib import Path

from prompt_toolkit.utils import get_cwidth

from ollm.cli.screen.live import LiveOutput
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.themes import THEMES
from ollm.cli.screen.transcript import Transcript
from ollm.cli.screen.view import (
    format_status_line,
    read_git_branch,
    render_header,
)
from ollm.domain.events import (
    AnyEvent,
    ContextUsage,
    PrefillProgress,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.messages import ImagePart
from ollm.domain.tools import ErrorInfo, Todo, ToolResult
from ollm.runtime.base import Status
from tests.cli.screen.samples import PLAIN, Clock, status


def test_the_seconds_left_for_reading_count_down_and_only_a_server_s_own_count_is_a_share() -> None:
    clock = Clock()
    shown = Transcript(PLAIN, lambda _: None, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    shown.show(PrefillProgress(total=2000, seconds_left=20.0))
    assert "reading 2,000 new tokens, about 20 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "reading 2,000 new tokens, about 5 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 7
    assert "reading 2,000 new tokens (22 s)" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "waiting for the model (37 s)" in shown.live.render_lines(80, 5)[0]
    shown.show(PrefillProgress(processed=1000, total=2000, seconds_left=10.0))
    assert "reading 2,000 new tokens 50 %, about 10 s left" in shown.live.render_lines(80, 5)[0]
    shown.show(PrefillProgress(processed=1950, total=2000, seconds_left=2.0, cached=1900))
    assert "reading the prompt 50 %, about 2 s left" in shown.live.render_lines(80, 5)[0]


def live(clock: Clock) -> LiveOutput:
    found = LiveOutput(PLAIN, clock)
    found.begin()
    return found


def test_tools_under_way_show_the_last_lines_they_printed() -> None:
    clock = Clock()
    found = live(clock)
    found.show(ToolStarted(call_id="a", name="shell", summary="Run a"))
    found.show(ToolStarted(call_id="b", name="shell", summary="Run b"))
    clock.time += 2
    found.show(ToolOutput(call_id="a", text="1\n\n2\n3\n4\n5\n6\n"))
    found.show(ToolOutput(call_id="gone", text="x"))

    assert found.render_lines(80, 20) == [
        "⠋ Run a (2 s)",
        *(f"  │ {n}" for n in range(2, 7)),
        "⠋ Run b (2 s)",
    ]
    assert found.render_lines(80, 2) == ["⠋ Run a (2 s)", "⠋ Run b (2 s)"], "each call before the lines of one"
    assert found.render_lines(10, 1) == ["⠋ Run b ("]
    tool = found.end_tool("a")
    assert tool is not None
    assert tool.summary == "Run a"
    assert found.phase == "tools"
    assert found.end_tool("gone") is None
    assert [left.summary for left in found.end()] == ["Run b"]


def test_events_become_lines_and_nothing_stays_alive_after_the_turn() -> None:
    out: list[str] = []
    clock = Clock()
    shown = Transcript(PLAIN, out.append, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    assert "waiting for the model" in shown.live.render_lines(80, 5)[0]
    shown.show(ThinkingDelta(text="a\nb"))
    assert "thinking" in shown.live.render_lines(80, 5)[0]
    shown.show(TextDelta(text="One.\n\nTw"))
    assert out == ["  thought for 0 s (Ctrl-O to show)\n", "● One.\n\n"]
    assert shown.live.render_lines(80, 5)[0] == "  Tw"
    assert "writing (0 s · ↓ 2 tokens) · Esc stops" in shown.live.render_lines(80, 5)[1]
    shown.show(ToolStarted(call_id="c", name="shell", summary="Run \x1b[31m"))
    shown.show(ToolOutput(call_id="c", text="".join(f"row {n}\n" for n in range(50))))
    assert shown.live.render_lines(80, 9)[1:] == [f"  │ row {n}" for n in range(45, 50)]
    image = ImagePart(media_type="image/png", data="A" * 4000)
    result = ToolResult(llm_content="all of it", exit_code=2, images=(image,))
    shown.show(ToolFinished(call_id="c", name="shell", status="ok", result=result, seconds=1.5))
    assert out[-3:] == ["  ✗ Run \\x1b[31m · exit 2 · 1.5 s\n", "  ▣ image/png, 3 kB\n", "  │ all of it\n"]
    shown.unfold()
    assert out[-2:] == ["  Run \\x1b[31m\n", "    all of it\n"]
    shown.show(TurnFinished(reason="cancelled"))
    assert out[-1] == "  stopped\n\n"
    assert shown.live.render_lines(80, 5) == []


class Shown:
    """A transcript and what it printed."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.clock = Clock()
        self.transcript = Transcript(PLAIN, self.out.append, self.clock)

    def show(self, *events: AnyEvent) -> list[str]:
        self.out.clear()
        for event in events:
            self.transcript.show(event)
        return self.out


def finish(result: ToolResult, summary: str = "Run it", seconds: float = 0.25) -> list[str]:
    shown = Shown()
    return shown.show(
        ToolStarted(call_id="c", name="shell", summary=summary),
        ToolFinished(call_id="c", name="shell", status="ok", result=result, seconds=seconds),
    )


def test_a_call_ends_with_its_outcome() -> None:
    assert finish(ToolResult(llm_content="x")) == ["  ✓ Run it · 0.2 s\n"]
    assert finish(ToolResult(llm_content="x", exit_code=0))[0] == "  ✓ Run it · 0.2 s\n"
    assert finish(ToolResult(llm_content="x", exit_code=3))[0] == "  ✗ Run it · exit 3 · 0.2 s\n"
    failed = ToolResult(llm_content="x", error=ErrorInfo(type="NotFound", message="no such file"))
    assert finish(failed) == ["  ✗ Run it · no such file\n"]
    assert finish(ToolResult(llm_content="x"), "two\n  lines") == ["  ✓ two lines · 0.2 s\n"]
    assert finish(ToolResult(llm_content="x"), "y" * 200)[0] == f"  ✓ {'y' * 54}… · 0.2 s\n"


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_git_branch(tmp_path) == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "HEAD").write_text("ref: refs/heads/fix/one\n")
    (tmp_path / ".git").write_text("gitdir: real\n")
    assert read_git_branch(tmp_path) == "fix/one"
    (tmp_path / "real" / "HEAD").write_text("0123456789abcdef\n")
    assert read_git_branch(tmp_path) == "01234567"


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
    assert format_status_line(None, shown, "", 0, 80, waited=("connecting", 0.9)) == " connecting…"
    assert format_status_line(None, shown, "", 2, 80, waited=("loading m", 3.2)) == " loading m… 3 s · 2 queued"
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
    return render_header(status, "main", Painter(lambda: width, THEMES["plain"]))


def test_the_header_names_model_window_folder_and_branch() -> None:
    shown = describe("/models/Qwen2.5-Coder.gguf", "openai")

    assert "Qwen2.5-Coder · 32,768-token context · box:8080" in shown
    assert "/work-here · main" in shown
    narrow = describe("qwen3:8b", "openai", width=40).splitlines()
    assert narrow[1:4] == ["▌ qwen3:8b · 32,768-token context", "▌ /work-here · main", NARROW_TIPS]
    assert all(len(line) <= 40 for line in describe("m" * 90, "openai", width=40).splitlines())
