"""What is alive on the screen: waiting, thinking, writing, tools."""

import pytest

from ollm.cli.screen.live import LiveOutput
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    AnyEvent,
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
from ollm.domain.tools import ErrorInfo, ToolResult
from tests.cli.screen.samples import PLAIN, Clock


def test_the_seconds_left_for_reading_count_down_and_only_a_server_s_own_count_is_a_share() -> None:
    clock = Clock()
    shown = Transcript(PLAIN, lambda _: None, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    shown.show(PrefillProgress(total=2000, seconds_left=20.0))
    assert "reading the prompt, about 20 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "reading the prompt, about 5 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 7
    assert "reading the prompt (22 s)" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "waiting for the model (37 s)" in shown.live.render_lines(80, 5)[0]
    shown.show(PrefillProgress(processed=1000, total=2000, seconds_left=10.0))
    assert "reading the prompt 50 %, about 10 s left" in shown.live.render_lines(80, 5)[0]


def live(clock: Clock) -> LiveOutput:
    found = LiveOutput(PLAIN, clock)
    found.begin()
    return found


def test_a_thought_shows_its_last_line() -> None:
    found = live(Clock())
    found.add_thinking("first\nsecond\n\n")

    assert found.render_lines(80, 5) == ["⠋ thinking (0 s · ↓ 1 token) · Esc stops · second"]
    assert found.render_lines(20, 5) == ["⠋ thinking (0 s · ↓"]


def test_tools_under_way_show_the_last_lines_they_printed() -> None:
    clock = Clock()
    found = live(clock)
    found.start_tool(ToolStarted(call_id="a", name="shell", summary="Run a"))
    found.start_tool(ToolStarted(call_id="b", name="shell", summary="Run b"))
    clock.time += 2
    found.add_tool_output("a", "1\n\n2\n3\n4\n5\n6\n")
    found.add_tool_output("gone", "x")

    assert found.render_lines(80, 20) == [
        "⠋ Run a (2 s)",
        *(f"  │ {n}" for n in range(2, 7)),
        "⠋ Run b (2 s)",
    ]
    assert found.render_lines(80, 2) == ["  │ 6", "⠋ Run b (2 s)"]
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
    assert out == ["  thought for 2 lines (Ctrl-O to show)\n", "● One.\n\n"]
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


@pytest.mark.parametrize(
    ("finished", "lines"),
    [
        (TurnFinished(reason="answered"), []),
        (TurnFinished(reason="cancelled"), ["  stopped\n\n"]),
        (TurnFinished(reason="cancelled", message="time is up"), ["  time is up\n\n"]),
        (TurnFinished(reason="model-error", message="it fell over"), ["  it fell over\n\n"]),
    ],
)
def test_a_turn_ends_in_silence_or_with_why(finished: TurnFinished, lines: list[str]) -> None:
    assert Shown().show(TurnStarted(message_id=1, text="x"), finished) == lines


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
