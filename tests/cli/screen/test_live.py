"""What is alive on the screen: waiting, thinking, writing, tools."""

import pytest

from ollm.cli.screen.live import LiveOutput
from ollm.cli.screen.transcript import Transcript
from ollm.domain.events import (
    PrefillProgress,
    ToolOutput,
    ToolStarted,
    TurnStarted,
)
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


def test_nothing_is_alive_before_a_turn_and_after_it() -> None:
    clock = Clock()
    found = LiveOutput(PLAIN, clock)
    assert found.render_lines(80, 5) == []
    found.begin()
    assert found.render_lines(80, 5) == ["⠋ waiting for the model (0 s) · Esc stops"]
    assert found.end() == []
    assert found.render_lines(80, 5) == []


def test_the_spinner_turns_ten_times_a_second() -> None:
    clock = Clock()
    found = live(clock)
    clock.time += 0.1
    assert found.render_lines(80, 5)[0].startswith("⠙ ")
    clock.time += 0.9
    assert found.render_lines(80, 5)[0].startswith("⠋ waiting for the model (1 s)")


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (PrefillProgress(stage="connecting"), "connecting"),
        (PrefillProgress(stage="loading"), "loading the model"),
        (PrefillProgress(), "reading the prompt"),
        (PrefillProgress(processed=1, total=3), "reading the prompt 33 %"),
        (PrefillProgress(processed=0, total=3), "reading the prompt"),
        (PrefillProgress(seconds_left=1.0), "reading the prompt, about 1 s left"),
        (PrefillProgress(seconds_left=0.9), "reading the prompt"),
    ],
)
def test_what_is_waited_for_is_said(progress: PrefillProgress, words: str) -> None:
    found = live(Clock())
    found.update_progress(progress)

    assert found.render_lines(80, 5) == [f"⠋ {words} (0 s) · Esc stops"]


@pytest.mark.parametrize(("late", "words"), [(13.0, "reading the prompt"), (13.2, "waiting for the model")])
def test_a_prompt_that_must_have_been_read_is_no_longer_said_to_be(late: float, words: str) -> None:
    clock = Clock()
    found = live(clock)
    found.update_progress(PrefillProgress(seconds_left=10.0))
    clock.time += 15.0 if late == 13.0 else 15.2

    assert words in found.render_lines(80, 5)[0]


def test_a_thought_shows_its_last_line() -> None:
    found = live(Clock())
    found.add_thinking("first\nsecond\n\n")

    assert found.render_lines(80, 5) == ["⠋ thinking (0 s · ↓ 1 token) · Esc stops · second"]
    assert found.render_lines(20, 5) == ["⠋ thinking (0 s · ↓"]


def test_an_open_block_stands_above_and_is_cut_from_its_top() -> None:
    found = live(Clock())
    assert found.add_answer("done.\n\nopen") == ["done."]
    assert found.render_lines(80, 5) == ["● open", "⠋ writing (0 s · ↓ 1 token) · Esc stops"]
    found.add_answer("\n" + "\n".join(f"- {n}" for n in range(30)))
    lines = found.render_lines(80, 4)
    assert len(lines) == 4
    assert "29" in lines[2]


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


def test_after_the_last_tool_the_model_is_waited_for_again() -> None:
    clock = Clock()
    found = live(clock)
    found.update_progress(PrefillProgress(stage="loading"))
    found.start_tool(ToolStarted(call_id="a", name="shell", summary="Run a"))
    clock.time += 5
    found.end_tool("a")

    assert found.render_lines(80, 5) == ["⠋ waiting for the model (0 s) · Esc stops"]


def test_only_the_end_of_much_output_is_kept() -> None:
    found = live(Clock())
    found.start_tool(ToolStarted(call_id="a", name="shell", summary="Run"))
    found.add_tool_output("a", "x" * 9000)
    tool = found.end_tool("a")

    assert tool is not None
    assert len(tool.tail) == 4000


def test_a_task_is_one_line_until_it_is_opened() -> None:
    shown = Transcript(PLAIN, lambda _: None, Clock())
    shown.show(TurnStarted(message_id=1, text="hi"))
    shown.show(ToolStarted(call_id="c1", name="task", summary="Task: Look"))
    for number in range(9):
        shown.show(ToolOutput(call_id="c1", text=f"Read {number}.py\n"))

    assert shown.live.render_lines(80, 10)[1:] == ["  │ Read 8.py · Ctrl-O shows all"]
    shown.unfold()
    assert shown.live.render_lines(80, 10)[1:] == [f"  │ Read {number}.py" for number in range(9)]
    assert len(shown.live.render_lines(80, 4)) == 4
    shown.unfold()
    assert len(shown.live.render_lines(80, 10)) == 2
