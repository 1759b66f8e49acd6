"""Events become lines above the input."""

from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.messages import ImagePart
from ollm.domain.tools import ToolResult
from tests.cli.screen.samples import PLAIN, Clock


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
    assert out[-2:] == ["  Run \\x1b[31m\n", "all of it\n"]
    shown.show(TurnFinished(reason="cancelled"))
    assert out[-1] == "  stopped\n"
    assert shown.live.render_lines(80, 5) == []
